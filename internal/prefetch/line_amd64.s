#include "textflag.h"

// func line(at unsafe.Pointer)
TEXT ·line(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func lines(at unsafe.Pointer)
TEXT ·lines(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET
