package proctree

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestEmptyEnvironmentIsUnreadDuringAnExecution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		flags      int
		begin, end string
		want       bool
	}{
		{"executes a program", 0x400000, "0", "0", true},
		{"has just executed a program", 0x400000, "140731", "140799", true},
		{"without entries", 0x400000, "140731", "140731", false},
		{"kernel thread", 0x208040, "0", "0", false},
		{"exits", 0x40000c, "0", "0", false},
	} {
		fields := fmt.Sprintf("7 (a) b) R 1 7 7 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 4711", c.flags)
		for range 27 {
			fields += " 1"
		}
		s, ok := parse([]byte(fields + " " + c.begin + " " + c.end + " 0"))
		if !ok || s.unread != c.want || s.parent != 1 || s.born != "4711" {
			t.Errorf("%s: got %+v and %v, want unread %v", c.name, s, ok, c.want)
		}
	}
}

func TestMarkOfARealProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environment []string
		want        bool
	}{{[]string{"A=1", "MARK=x"}, true}, {[]string{"MARK=xy"}, false}, {[]string{}, false}} {
		program := exec.CommandContext(t.Context(), "cat")
		program.Env = c.environment
		in, err := program.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		// An answer shows that the execution of the program is complete.
		if _, err := in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		marked, unread := process{pid: program.Process.Pid}.marked("MARK=x")
		if marked != c.want || unread {
			t.Errorf("%v: got %v and unread %v, want %v", c.environment, marked, unread, c.want)
		}
		_ = in.Close()
		_ = program.Wait()
	}
	if _, unread := (process{pid: os.Getpid()}).marked("MARK=x"); unread {
		t.Error("this process is unread")
	}
}
