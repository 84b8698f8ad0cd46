#include "textflag.h"

// func line(at unsafe.Pointer)
TEXT ·line(SB), NOSPLIT, $0-8
	MOVD at+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func lines(at unsafe.Pointer)
TEXT ·lines(SB), NOSPLIT, $0-8
	MOVD at+0(FP), R0
	PRFM (R0), PLDL1KEEP
	PRFM 64(R0), PLDL1KEEP
	RET
