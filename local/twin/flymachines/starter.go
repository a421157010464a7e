package flymachines

import (
	"syscall"
	"time"
)

// Starter runs the programs of machines. Its calls may come from many
// goroutines at once; calls about one machine come one after the other.
type Starter interface {
	// Start runs the program and returns once it runs. A program that cannot
	// be run at all (no such file) is a Process that has ended with 126 or 127;
	// an error is a failure of the starter's own, and means that nothing runs.
	Start(p Program) (Process, error)
	// Find gives the same start of the same program again that was made before
	// the server was killed; nil where there is none.
	Find(p Program) (Process, error)
}

// Program is what a machine runs.
type Program struct {
	MachineID, Image string
	// Start counts the machine's starts, from 1.
	Start int
	Argv  []string
	// Env is the whole environment.
	Env map[string]string
	// Dir is the machine's folder. Root and Tmp in it are HOME and TMPDIR; the
	// starter makes them where the program needs them.
	Dir, Root, Tmp string
	Files          []File
	OutputLimit    int
}

// File is one that lies in Root before the program starts.
type File struct {
	// Path is within Root, and local to it.
	Path string
	Data []byte
	Mode uint32
}

// Process is one start of a program.
type Process interface {
	// StartedAt is when it started; the zero time where that is not known.
	StartedAt() time.Time
	// Signal reaches the program and its children; nil where they are gone.
	Signal(s syscall.Signal) error
	// Wait returns when the program has ended and nothing of it runs. It is
	// called once.
	Wait() (Exit, error)
}

// Exit is how a program ended.
type Exit struct {
	// Code is the exit code, 128+n for signal n.
	Code int
	// Signal is the signal's number, 0 where none ended the program.
	Signal int
	// Problem says why there was no proper end.
	Problem string
	At      time.Time
}

// killed is the end of a program that was lost.
func killed(at time.Time, problem string) Exit {
	return Exit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL), Problem: problem, At: at}
}
