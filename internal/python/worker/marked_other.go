//go:build unix && !linux

package worker

const markVariable = "ORDAIN_EXECUTOR"

// KillMarked finds nothing where there is no /proc: the process group is all
// that ends with a worker.
func KillMarked(string) int { return 0 }

func tasksOfUser() int { return 0 }

// Descendants is empty where there is no /proc.
func Descendants(int) []int { return nil }

// SystemTasks is unknown where there is no /proc.
func SystemTasks() int { return 0 }
