package calls

import (
	"testing"

	"golang.org/x/sys/unix"
)

// verdict runs a program as the kernel would (seccomp(2), bpf(4)).
func verdict(t *testing.T, program []unix.SockFilter, architecture, nr uint32, args ...uint32) uint32 {
	t.Helper()
	data := map[uint32]uint32{atCall: nr, atArchitecture: architecture}
	for i, a := range args {
		data[uint32(atArguments+8*i)] = a
	}
	var accumulator uint32
	for at := 0; at < len(program); at++ {
		switch in := program[at]; in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			accumulator = data[in.K]
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			accumulator &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			if accumulator == in.K {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			if accumulator&in.K != 0 {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d: code %#x", at, in.Code)
		}
	}
	t.Fatal("the program ends without a verdict")
	return 0
}

func TestProgram(t *testing.T) {
	const here = 0xc0de
	p := Program(here, []Rule{
		{1, nil, Allow},
		{2, []Condition{{0, ^uint32(0), 5}}, Allow},
		{3, []Condition{{1, 0xf, 2}, {2, 4, 0}, {0, ^uint32(0), 9}}, Allow},
		{4, nil, Kill},
		{5, []Condition{{0, ^uint32(0), 1}}, Allow},
		{5, []Condition{{0, ^uint32(0), 2}}, Absent},
	}, Refuse)
	for _, tt := range []struct {
		architecture, nr uint32
		args             []uint32
		want             uint32
	}{
		{here, 1, nil, Allow},
		{here + 1, 1, nil, Kill},
		{here, 0, nil, Refuse},
		{here, 1 | 1<<30, nil, Refuse}, // the x32 numbers of amd64
		{here, 2, []uint32{5}, Allow},
		{here, 2, []uint32{4}, Refuse},
		{here, 3, []uint32{9, 0x12, 3}, Allow},
		{here, 3, []uint32{9, 0x13, 3}, Refuse},
		{here, 3, []uint32{9, 0x12, 4}, Refuse},
		{here, 3, []uint32{8, 0x12, 3}, Refuse},
		{here, 4, nil, Kill},
		{here, 5, []uint32{1}, Allow},
		{here, 5, []uint32{2}, Absent},
		{here, 5, []uint32{3}, Refuse},
		{here, 6, nil, Refuse},
	} {
		if got := verdict(t, p, tt.architecture, tt.nr, tt.args...); got != tt.want {
			t.Errorf("call %d%v of %#x: %#x, want %#x", tt.nr, tt.args, tt.architecture, got, tt.want)
		}
	}
}

// Even if everything is allowed except the calls in the rules, the calls of the x32 ABI are refused.
func TestOtherwise(t *testing.T) {
	const here = 0xc0de
	p := Program(here, []Rule{{1, nil, Refuse}, {2, []Condition{{0, 6, 6}}, Refuse}}, Allow)
	for _, tt := range []struct{ architecture, nr, argument, want uint32 }{
		{here, 0, 0, Allow},
		{here, 1, 0, Refuse},
		{here, 2, 6, Refuse},
		{here, 2, 15, Refuse},
		{here, 2, 4, Allow},
		{here, 3 | 1<<30, 0, Refuse},
		{here + 1, 0, 0, Kill},
	} {
		if got := verdict(t, p, tt.architecture, tt.nr, tt.argument); got != tt.want {
			t.Errorf("call %d(%d) of %#x: %#x, want %#x", tt.nr, tt.argument, tt.architecture, got, tt.want)
		}
	}
}
