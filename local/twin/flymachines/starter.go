package flymachines

import (
	"syscall"
	"time"
)

// Starter runs the programs of machines. It is called concurrently for
// different machines, and sequentially for one machine.
type Starter interface {
	// Start runs the program and returns once it runs. If the program cannot be
	// executed (no such file), the result is a Process that has ended with 126
	// or 127. An error is a failure of the starter itself and means that no
	// program runs.
	Start(p Program) (Process, error)
	// Find returns the process of a start made by an earlier server, or nil without one.
	Find(p Program) (Process, error)
}

// Program is the program of a machine with its surroundings.
type Program struct {
	MachineID, Image string
	// Start counts the machine's starts, from 1.
	Start int
	Argv  []string
	// Env is the whole environment.
	Env map[string]string
	// Wrapper runs the program in the same way as sortie-exec; nil means without a wrapper.
	Wrapper *Wrapper
	// Dir is the machine's folder. Root and Tmp in it are HOME and TMPDIR; the
	// starter creates them if the program needs them.
	Dir, Root, Tmp string
	Files          []File
	OutputLimit    int
}

// Wrapper configures sortie-exec as a part of the starter.
type Wrapper struct {
	// Flags are the flags of sortie-exec.
	Flags []string
	// Env is the whole environment of the wrapper. It has no variables of the program.
	Env map[string]string
}

// File is a file in Root that exists before the program starts.
type File struct {
	// Path is relative to Root and does not leave it.
	Path string
	Data []byte
	Mode uint32
}

// Process is one start of a program.
type Process interface {
	// StartedAt is the time of the start; the zero time if it is unknown.
	StartedAt() time.Time
	// Signal signals the program and its children. It returns nil if they have ended.
	Signal(s syscall.Signal) error
	// Wait returns when the program and its children have ended. The caller calls it once.
	Wait() (Exit, error)
}

// Exit is the result of a program.
type Exit struct {
	// Code is the exit code, 128+n for signal n.
	Code int
	// Signal is the signal's number; 0 if no signal ended the program.
	Signal int
	// Problem says why the program did not end normally.
	Problem string
	At      time.Time
}

// killed returns the exit of a program whose real result is unknown: SIGKILL.
func killed(at time.Time, problem string) Exit {
	return Exit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL), Problem: problem, At: at}
}
