//go:build unix && !linux

package worker

const markVariable = "ORDAIN_EXECUTOR"

// KillMarked does nothing without /proc. Only the process group of a worker ends
// with it then.
func KillMarked(string) int { return 0 }

func tasksOfUser() int { return 0 }

// Descendants returns nothing without /proc.
func Descendants(int) []int { return nil }

// SystemTasks returns 0 without /proc.
func SystemTasks() int { return 0 }
