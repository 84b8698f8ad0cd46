package filestamp

import "syscall"

func times(s *syscall.Stat_t) (content, metadata int64) {
	return s.Mtimespec.Nano(), s.Ctimespec.Nano()
}
