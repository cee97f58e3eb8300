#include "textflag.h"

// The kernels of simd_amd64.go, for eight contexts at once. Offsets into type looked: hash 0, line 64, slot 128, count 192,
// smAt 256, smWas 320, speaks 384, used 448.

DATA ones<>+0(SB)/4, $1
GLOBL ones<>(SB), RODATA|NOPTR, $4
DATA octet<>+0(SB)/4, $255
GLOBL octet<>(SB), RODATA|NOPTR, $4
DATA fifteen<>+0(SB)/4, $15
GLOBL fifteen<>(SB), RODATA|NOPTR, $4
DATA fresh<>+0(SB)/4, $0x80000000
GLOBL fresh<>(SB), RODATA|NOPTR, $4

// The groups of counts: those below 16, then one more from 30 on.
DATA groups<>+0(SB)/8, $0x0505040302010000
DATA groups<>+8(SB)/8, $0x0606060605050505
DATA groups<>+16(SB)/8, $0x0505040302010000
DATA groups<>+24(SB)/8, $0x0606060605050505
GLOBL groups<>(SB), RODATA|NOPTR, $32

DATA old<>+0(SB)/8, $0x0000001d0000001d
DATA old<>+8(SB)/8, $0x0000001d0000001d
DATA old<>+16(SB)/8, $0x0000001d0000001d
DATA old<>+24(SB)/8, $0x0000001d0000001d
GLOBL old<>(SB), RODATA|NOPTR, $32

// stretchMax, and what divides a stretched probability into 32 slots: (s + 2815) * 95343 >> 24.
DATA most<>+0(SB)/8, $0x00000aff00000aff
DATA most<>+8(SB)/8, $0x00000aff00000aff
DATA most<>+16(SB)/8, $0x00000aff00000aff
DATA most<>+24(SB)/8, $0x00000aff00000aff
GLOBL most<>(SB), RODATA|NOPTR, $32
DATA slots<>+0(SB)/8, $0x0001746f0001746f
DATA slots<>+8(SB)/8, $0x0001746f0001746f
DATA slots<>+16(SB)/8, $0x0001746f0001746f
DATA slots<>+24(SB)/8, $0x0001746f0001746f
GLOBL slots<>(SB), RODATA|NOPTR, $32

// Where the map of each context begins.
DATA maps<>+0(SB)/8, $0x0000010000000000
DATA maps<>+8(SB)/8, $0x0000030000000200
DATA maps<>+16(SB)/8, $0x0000050000000400
DATA maps<>+24(SB)/8, $0x0000070000000600
DATA maps<>+32(SB)/8, $0x0000090000000800
DATA maps<>+40(SB)/8, $0x00000b0000000a00
DATA maps<>+48(SB)/8, $0x00000d0000000c00
DATA maps<>+56(SB)/8, $0x00000f0000000e00
GLOBL maps<>(SB), RODATA|NOPTR, $64

// PAIRS gets the pairs of counters at eight even slots, which stand on the stack: the first of each and the second. Two
// VPGATHERDD take longer.
#define PAIRS(FIRST, SECOND) \
	MOVL 0(SP), R9; \
	MOVL 4(SP), R10; \
	MOVL 8(SP), R11; \
	MOVL 12(SP), R12; \
	VMOVQ (BX)(R9*4), X3; \
	VMOVQ (BX)(R11*4), X4; \
	VPINSRQ $1, (BX)(R10*4), X3, X3; \
	VPINSRQ $1, (BX)(R12*4), X4, X4; \
	MOVL 16(SP), R9; \
	MOVL 20(SP), R10; \
	MOVL 24(SP), R11; \
	MOVL 28(SP), R12; \
	VMOVQ (BX)(R9*4), X5; \
	VMOVQ (BX)(R11*4), X6; \
	VPINSRQ $1, (BX)(R10*4), X5, X5; \
	VPINSRQ $1, (BX)(R12*4), X6, X6; \
	VINSERTI128 $1, X5, Y3, Y10; \
	VINSERTI128 $1, X6, Y4, Y6; \
	VSHUFPS $0xdd, Y6, Y10, SECOND; \
	VSHUFPS $0x88, Y6, Y10, FIRST

// AX looked, BX over, CX Sm, DX in, SI stretched; Y15, Y14: of the bits so far; Y13 255, Y12 fresh, Y11 15, Y9 1.
#define ASK(OFF) \
	VMOVDQU OFF(AX), Y0; \
	VPSRLD $8, Y0, Y1; \
	VPADDD Y15, Y1, Y1; \
	VPAND Y13, Y1, Y1; \
	VPSRLD $3, Y0, Y2; \
	VPADDD Y14, Y2, Y2; \
	VPAND Y11, Y2, Y2; \
	VPADDD (64+OFF)(AX), Y2, Y2; \
	VPANDN Y2, Y9, Y4; \
	VMOVDQU Y4, 0(SP); \
	PAIRS(Y3, Y5); \
	VPSLLD $31, Y2, Y6; \
	VBLENDVPS Y6, Y5, Y3, Y4; \
	VBLENDVPS Y6, Y3, Y5, Y5; \
	VMOVDQU Y4, Y3; \
	VPXOR Y9, Y2, Y4; \
	VPAND Y13, Y3, Y6; \
	VPCMPEQD Y1, Y6, Y6; \
	VPAND Y13, Y5, Y7; \
	VPCMPEQD Y1, Y7, Y7; \
	VPSRLD $8, Y3, Y8; \
	VPAND Y13, Y8, Y8; \
	VPSRLD $8, Y5, Y0; \
	VPAND Y13, Y0, Y0; \
	VPCMPGTD Y0, Y8, Y0; \
	VPOR Y7, Y0, Y0; \
	VPANDN Y0, Y6, Y0; \
	VPBLENDVB Y0, Y4, Y2, Y2; \
	VMOVDQU Y2, (128+OFF)(AX); \
	VPOR Y12, Y1, Y1; \
	VPBLENDVB Y7, Y5, Y1, Y5; \
	VPBLENDVB Y6, Y3, Y5, Y3; \
	VPSRLD $8, Y3, Y4; \
	VPAND Y13, Y4, Y4; \
	VPXOR Y0, Y0, Y0; \
	VPCMPEQD Y0, Y4, Y0; \
	VPBLENDVB Y0, Y1, Y3, Y3; \
	VMOVDQU Y3, (192+OFF)(AX); \
	VMOVDQU (448+OFF)(AX), Y5; \
	VPANDN Y5, Y0, Y0; \
	VMOVDQU Y0, (384+OFF)(AX); \
	VPMINUD Y11, Y4, Y5; \
	VMOVDQU groups<>(SB), Y6; \
	VPSHUFB Y5, Y6, Y5; \
	VPCMPGTD old<>(SB), Y4, Y6; \
	VPSUBD Y6, Y5, Y5; \
	VPSLLD $5, Y5, Y5; \
	VPSRLD $20, Y3, Y6; \
	VPCMPEQD Y10, Y10, Y10; \
	VPGATHERDD Y10, (SI)(Y6*2), Y7; \
	VPSLLD $16, Y7, Y7; \
	VPSRAD $16, Y7, Y7; \
	VPADDD most<>(SB), Y7, Y8; \
	VPMULLD slots<>(SB), Y8, Y8; \
	VPSRLD $24, Y8, Y8; \
	VPADDD Y8, Y5, Y5; \
	VPADDD maps<>+OFF(SB), Y5, Y5; \
	VMOVDQU Y5, (256+OFF)(AX); \
	VPCMPEQD Y10, Y10, Y10; \
	VPGATHERDD Y10, (CX)(Y5*2), Y6; \
	VPSLLD $16, Y6, Y6; \
	VPSRLD $16, Y6, Y5; \
	VMOVDQU Y5, (320+OFF)(AX); \
	VPSRLD $20, Y6, Y6; \
	VPCMPEQD Y10, Y10, Y10; \
	VPGATHERDD Y10, (SI)(Y6*2), Y8; \
	VPSLLD $16, Y8, Y8; \
	VPSRAD $16, Y8, Y8; \
	VPADDD Y8, Y8, Y6; \
	VPADDD Y6, Y8, Y8; \
	VPADDD Y7, Y8, Y8; \
	VPSRAD $2, Y8, Y8; \
	VPAND Y0, Y8, Y8; \
	VMOVDQU Y8, OFF(DX)

// Y15 what turns a probability round where a one came, Y14 what rounds, Y13 255, Y12 the target.
#define LEARN(OFF) \
	VMOVDQU (192+OFF)(AX), Y0; \
	VPSRLD $8, Y0, Y1; \
	VPAND Y13, Y1, Y1; \
	VPCMPEQD Y10, Y10, Y10; \
	VPGATHERDD Y10, (SI)(Y1*4), Y2; \
	VPSRLD $16, Y0, Y3; \
	VPXOR Y15, Y3, Y3; \
	VPSRLD $8, Y2, Y4; \
	VPMULLD Y3, Y4, Y4; \
	VPADDD Y14, Y4, Y4; \
	VPSRLD $16, Y4, Y4; \
	VPSUBD Y4, Y3, Y3; \
	VPXOR Y15, Y3, Y3; \
	VPSLLD $16, Y3, Y3; \
	VPAND Y13, Y2, Y2; \
	VPSLLD $8, Y2, Y2; \
	VPAND Y13, Y0, Y0; \
	VPOR Y2, Y3, Y3; \
	VPOR Y0, Y3, Y3; \
	VMOVDQU Y3, (192+OFF)(AX); \
	VMOVDQU (320+OFF)(AX), Y0; \
	VPSUBD Y0, Y12, Y1; \
	VPSRAD $6, Y1, Y1; \
	VPAND (384+OFF)(AX), Y1, Y1; \
	VPADDD Y1, Y0, Y0; \
	VMOVDQU Y0, (320+OFF)(AX)

#define KEEP(LANE) \
	MOVL (128+4*LANE)(AX), R8; \
	MOVL (192+4*LANE)(AX), R9; \
	MOVL (256+4*LANE)(AX), R10; \
	MOVL (320+4*LANE)(AX), R11; \
	MOVL R9, (BX)(R8*4); \
	MOVW R11, (CX)(R10*2)

// func learnWide(l *looked, over *uint32, sm *uint16, steps *[256]uint32, bit int)
TEXT ·learnWide(SB), NOSPLIT, $0-40
	MOVQ l+0(FP), AX
	MOVQ over+8(FP), BX
	MOVQ sm+16(FP), CX
	MOVQ steps+24(FP), SI
	MOVQ bit+32(FP), R8
	NEGQ R8
	ANDL $0xffff, R8
	VMOVD R8, X15
	VPBROADCASTD X15, Y15
	VMOVDQA Y15, Y12
	XORL $0xffff, R8
	VMOVD R8, X14
	VPBROADCASTD X14, Y14
	VPBROADCASTD octet<>(SB), Y13
	LEARN(0)
	CMPL 480(AX), $0
	JEQ keep
	LEARN(32)
keep:
	VZEROUPPER
	KEEP(0)
	KEEP(1)
	KEEP(2)
	KEEP(3)
	KEEP(4)
	KEEP(5)
	KEEP(6)
	KEEP(7)
	CMPL 480(AX), $0
	JEQ done
	KEEP(8)
	KEEP(9)
	KEEP(10)
	KEEP(11)
	KEEP(12)
	KEEP(13)
done:
	RET

// The inputs: Y0 the first six, Y2 and Y4 those of the contexts; then the even ones of each stand there, the odd ones in Y1,
// Y3, Y5. The first six were written one by one: read at once they would have to wait.
#define INPUTS \
	VMOVD (DI), X0; \
	VPINSRD $1, 4(DI), X0, X0; \
	VPINSRD $2, 8(DI), X0, X0; \
	VPINSRD $3, 12(DI), X0, X0; \
	VMOVD 16(DI), X1; \
	VPINSRD $1, 20(DI), X1, X1; \
	VINSERTI128 $1, X1, Y0, Y0; \
	VMOVDQU 24(DI), Y2; \
	VMOVDQU 56(DI), Y4; \
	VPSRLQ $32, Y0, Y1; \
	VPSRLQ $32, Y2, Y3; \
	VPSRLQ $32, Y4, Y5

#define DOT(W, OUT) \
	VMOVDQU (W), Y6; \
	VMOVDQU 24(W), Y7; \
	VMOVDQU 56(W), Y8; \
	VPMULDQ Y0, Y6, Y9; \
	VPMULDQ Y2, Y7, Y10; \
	VPMULDQ Y4, Y8, Y11; \
	VPSRLQ $32, Y6, Y6; \
	VPSRLQ $32, Y7, Y7; \
	VPSRLQ $32, Y8, Y8; \
	VPMULDQ Y1, Y6, Y6; \
	VPMULDQ Y3, Y7, Y7; \
	VPMULDQ Y5, Y8, Y8; \
	VPADDQ Y9, Y10, Y9; \
	VPADDQ Y6, Y7, Y6; \
	VPADDQ Y11, Y8, Y8; \
	VPADDQ Y9, Y6, Y6; \
	VPADDQ Y6, Y8, Y6; \
	VEXTRACTI128 $1, Y6, X7; \
	VPADDQ X6, X7, X6; \
	VPSHUFD $0x4e, X6, X7; \
	VPADDQ X6, X7, X6; \
	VMOVQ X6, OUT

// REG, between -stretchMax and stretchMax (CX, SI), to OUT, and squashed to MIXED; times its weight to R14.
#define SQUEEZE(REG, AT) \
	SARQ $16, REG; \
	CMPQ REG, SI; \
	CMOVQGT SI, REG; \
	CMPQ REG, CX; \
	CMOVQLT CX, REG; \
	MOVL REG, AT(R8); \
	MOVWLZX 5630(R10)(REG*2), R9; \
	MOVL R9, AT(BX); \
	MOVLQSX AT(AX), R9; \
	IMULQ R9, REG

// func foreseeWide(l *looked, w *weighing, half uint32) (st int, seen int)
TEXT ·foreseeWide(SB), NOSPLIT, $32-40
	MOVQ l+0(FP), AX
	MOVQ w+8(FP), R15
	MOVL half+16(FP), R8
	MOVQ (R15), BX // over
	MOVQ 8(R15), CX // sm
	MOVQ 16(R15), DI // in
	MOVQ 24(R15), SI // stretched
	LEAQ 24(DI), DX
	IMUL3L $0x3d, R8, R9
	LEAL (R8)(R8*4), R10
	VMOVD R9, X15
	VPBROADCASTD X15, Y15
	VMOVD R10, X14
	VPBROADCASTD X14, Y14
	VPBROADCASTD octet<>(SB), Y13
	VPBROADCASTD fresh<>(SB), Y12
	VPBROADCASTD fifteen<>(SB), Y11
	VPBROADCASTD ones<>(SB), Y9
	ASK(0)
	VMOVMSKPS Y0, R8
	CMPL 480(AX), $0 // no context of the second eight is asked
	JEQ few
	ASK(32)
	JMP weigh
few:
	VPXOR Y8, Y8, Y8
	VMOVDQU Y8, 32(DX)
weigh:
	ANDL $0x3e, R8 // the contexts of the last octets
	POPCNTL R8, R8
	MOVQ R8, seen+32(FP)
	IMULQ 88(R15), R8 // by octets of weights
	ADDQ 32(R15), R8 // a
	MOVQ 40(R15), R9 // b
	MOVQ 48(R15), R10 // c
	INPUTS
	DOT(R8, R11)
	DOT(R9, R12)
	DOT(R10, R13)
	VZEROUPPER
	MOVQ 56(R15), AX // end
	MOVQ 64(R15), R8 // out
	MOVQ 72(R15), BX // squashed
	MOVQ 80(R15), R10 // table
	MOVQ $2815, SI
	MOVQ $-2815, CX
	SQUEEZE(R11, 0)
	SQUEEZE(R12, 4)
	SQUEEZE(R13, 8)
	ADDQ R12, R11
	ADDQ R13, R11
	SARQ $16, R11
	CMPQ R11, SI
	CMOVQGT SI, R11
	CMPQ R11, CX
	CMOVQLT CX, R11
	MOVQ R11, st+24(FP)
	RET

DATA half<>+0(SB)/8, $0x80000
DATA half<>+8(SB)/8, $0x80000
DATA half<>+16(SB)/8, $0x80000
DATA half<>+24(SB)/8, $0x80000
GLOBL half<>(SB), RODATA|NOPTR, $32

// The low half of a product's 44th to 20th bit is that of an arithmetic shift too.
#define NUDGE(EVEN, ODD, E, AT, W) \
	VPMULDQ EVEN, E, Y9; \
	VPMULDQ ODD, E, Y10; \
	VPADDQ Y12, Y9, Y9; \
	VPADDQ Y12, Y10, Y10; \
	VPSRLQ $20, Y9, Y9; \
	VPSLLQ $12, Y10, Y10; \
	VPBLENDD $0xaa, Y10, Y9, Y9; \
	VPADDD AT, Y9, W

// The rows of three overlap by two weights: these are written last as the second has them.
#define NUDGES(AT, E) \
	NUDGE(Y0, Y1, E, (AT), Y6); \
	NUDGE(Y2, Y3, E, 24(AT), Y7); \
	NUDGE(Y4, Y5, E, 56(AT), Y8); \
	VMOVDQU Y6, (AT); \
	VMOVDQU Y7, 24(AT); \
	VMOVDQU Y8, 56(AT)

// func nudgeWide(in, a, b, c *int32, ea, eb, ec int64)
TEXT ·nudgeWide(SB), NOSPLIT, $0-56
	MOVQ in+0(FP), DI
	MOVQ a+8(FP), R8
	MOVQ b+16(FP), R9
	MOVQ c+24(FP), R10
	VPBROADCASTQ ea+32(FP), Y13
	VPBROADCASTQ eb+40(FP), Y14
	VPBROADCASTQ ec+48(FP), Y15
	VMOVDQU half<>(SB), Y12
	INPUTS
	NUDGES(R8, Y13)
	NUDGES(R9, Y14)
	NUDGES(R10, Y15)
	VZEROUPPER
	RET

// func bringWide(missing uint32, line, base *[lanes]uint32, at *lineTable, over *uint32, packed *byte, states *uint32, used, round uint32) (now uint32)
TEXT ·bringWide(SB), NOSPLIT, $0-68
	MOVL missing+0(FP), AX
	MOVQ line+8(FP), BX
	MOVQ base+16(FP), CX
	MOVQ at+24(FP), DX
	MOVQ over+32(FP), DI
	MOVQ packed+40(FP), SI
	MOVQ states+48(FP), R8
	MOVL used+56(FP), R9
	MOVL round+60(FP), R10
	VPBROADCASTD octet<>(SB), Y13
next:
	BSFL AX, R11
	JZ done
	LEAL -1(AX), R12
	ANDL R12, AX
	MOVL (CX)(R11*4), R12
	MOVL (DX)(R12*4), R13
	MOVL R13, R15
	SHRL $19, R15
	CMPL R15, R10
	JNE fill
	ANDL $0x7ffff, R13 // another context has brought it
	SHLL $4, R13
	MOVL R13, (BX)(R11*4)
	JMP next
fill:
	MOVL R9, (BX)(R11*4)
	MOVL R10, R13
	SHLL $19, R13
	MOVL R9, R15
	SHRL $4, R15
	ORL R15, R13
	MOVL R13, (DX)(R12*4)
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	TESTQ SI, SI
	JZ write
	SHLQ $5, R12
	VPMOVZXWD (SI)(R12*1), Y0
	VPMOVZXWD 16(SI)(R12*1), Y1
	VPAND Y13, Y0, Y2
	VPAND Y13, Y1, Y3
	VPCMPEQD Y10, Y10, Y10
	VPGATHERDD Y10, (R8)(Y2*4), Y4
	VPCMPEQD Y10, Y10, Y10
	VPGATHERDD Y10, (R8)(Y3*4), Y5
	VPSRLD $8, Y0, Y0
	VPSRLD $8, Y1, Y1
	VPOR Y0, Y4, Y4
	VPOR Y1, Y5, Y5
write:
	VMOVDQU Y4, (DI)(R9*4)
	VMOVDQU Y5, 32(DI)(R9*4)
	ADDL $16, R9
	JMP next
done:
	VZEROUPPER
	MOVL R9, now+64(FP)
	RET

DATA golden<>+0(SB)/4, $0x9e3779b1
GLOBL golden<>(SB), RODATA|NOPTR, $4
DATA stir<>+0(SB)/4, $0x2c1b3c6d
GLOBL stir<>(SB), RODATA|NOPTR, $4
DATA lineBits<>+0(SB)/4, $0x3ffff
GLOBL lineBits<>(SB), RODATA|NOPTR, $4
DATA ownBits<>+0(SB)/4, $0x7ffff
GLOBL ownBits<>(SB), RODATA|NOPTR, $4

// AX looked, BX the table, DX where to; Y15 of the first bits, Y14 golden, Y13 stir, Y12 lineBits, Y11 ownBits, Y9 the round.
#define LINES(OFF) \
	VPMULLD OFF(AX), Y14, Y0; \
	VPXOR Y15, Y0, Y0; \
	VPSRLD $15, Y0, Y1; \
	VPXOR Y1, Y0, Y0; \
	VPMULLD Y13, Y0, Y0; \
	VPSRLD $13, Y0, Y1; \
	VPXOR Y1, Y0, Y0; \
	VPAND Y12, Y0, Y0; \
	VMOVDQU Y0, (64+OFF)(DX); \
	VPCMPEQD Y10, Y10, Y10; \
	VPGATHERDD Y10, (BX)(Y0*4), Y1; \
	VPAND Y11, Y1, Y2; \
	VPSRLD $19, Y1, Y1; \
	VPCMPEQD Y9, Y1, Y1; \
	VMOVDQU (448+OFF)(AX), Y3; \
	VPSLLD $4, Y2, Y2; \
	VPAND Y1, Y2, Y2; \
	VPAND Y3, Y2, Y2; \
	VMOVDQU Y2, OFF(DX); \
	VPANDN Y3, Y1, Y1

// func linesWide(l *looked, at *lineTable, to *lines, base *byte, half, round uint32) (missing uint32)
TEXT ·linesWide(SB), NOSPLIT, $0-44
	MOVQ l+0(FP), AX
	MOVQ at+8(FP), BX
	MOVQ to+16(FP), DX
	MOVQ base+24(FP), SI
	MOVL half+32(FP), R8
	IMUL3L $0x85ebca6b, R8, R8
	VMOVD R8, X15
	VPBROADCASTD X15, Y15
	VPBROADCASTD golden<>(SB), Y14
	VPBROADCASTD stir<>(SB), Y13
	VPBROADCASTD lineBits<>(SB), Y12
	VPBROADCASTD ownBits<>(SB), Y11
	MOVL round+36(FP), R9
	VMOVD R9, X9
	VPBROADCASTD X9, Y9
	LINES(0)
	VMOVMSKPS Y1, R9
	LINES(32)
	VMOVMSKPS Y1, R8
	VZEROUPPER
	SHLL $8, R8
	ORL R8, R9
	MOVL R9, missing+40(FP)
	TESTQ SI, SI
	JZ done
next:
	BSFL R9, R8
	JZ done
	LEAL -1(R9), R10
	ANDL R10, R9
	MOVL 64(DX)(R8*4), R11
	SHLQ $5, R11
	PREFETCHT0 (SI)(R11*1)
	JMP next
done:
	RET

#define FETCH(LANE) \
	MOVL (4*LANE)(DX), R8; \
	PREFETCHT0 (DI)(R8*4)

// func fetchWide(lines *lines, over *uint32)
TEXT ·fetchWide(SB), NOSPLIT, $0-16
	MOVQ lines+0(FP), DX
	MOVQ over+8(FP), DI
	FETCH(0)
	FETCH(1)
	FETCH(2)
	FETCH(3)
	FETCH(4)
	FETCH(5)
	FETCH(6)
	FETCH(7)
	FETCH(8)
	FETCH(9)
	FETCH(10)
	FETCH(11)
	FETCH(12)
	FETCH(13)
	RET
