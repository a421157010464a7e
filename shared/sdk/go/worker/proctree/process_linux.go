package proctree

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// process identifies a live process. A number is reused, but not a number with a birth.
type process struct {
	pid, parent int
	born        string // in ticks since the boot
}

// batch is the number of names in one read of /proc. It is small, so that the newest processes,
// which come last, are read shortly before they are checked.
const batch = 64

// processes calls each for every live process, in the order of their numbers. It includes a
// process that starts meanwhile if its number is above those that were read.
func processes(each func(process)) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if p, ok := read(pid); ok {
					each(p)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads fields 3, 4, 9, 22, 50 and 51 of /proc/PID/stat (proc(5)). The second field, a name in
// parentheses, may contain any character. It returns false if the process has ended.
func read(pid int) (process, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	s, ok := parse(data)
	return process{pid, s.parent, s.born}, ok && s.state != 'Z' && s.state != 'X'
}

type stat struct {
	state  byte
	parent int
	born   string
	// unread means that an environment which was read as empty may have entries: the process
	// was executing a program.
	unread bool
}

// Flags of processes, from linux/sched.h.
const (
	exiting      = 0x00000004
	kernelThread = 0x00200000
)

// parse parses the text of /proc/PID/stat.
func parse(data []byte) (stat, bool) {
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 49 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	flags, failed := strconv.ParseUint(string(fields[6]), 10, 32)
	s := stat{state: fields[0][0], parent: parent, born: string(fields[19])}
	begin, end := string(fields[47]), string(fields[48])
	s.unread = flags&(exiting|kernelThread) == 0 && (end == "0" || end != begin)
	return s, err == nil && failed == nil
}

// signal sends a signal to the process, and never to another one with its number: it opens a
// handle first and then compares the birth. It returns no error if the process is gone or
// belongs to another user.
func (p process) signal(s syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if now, ok := read(p.pid); !ok || now.born != p.born {
		return nil
	}
	if err := handle.Signal(s); !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// marked reports whether the process was started with this entry in its environment. unread is
// true if it may have been, because it was executing a program and has no readable environment.
// Both are false for a process of another user, which cannot be read.
func (p process) marked(entry string) (marked, unread bool) {
	folder := "/proc/" + strconv.Itoa(p.pid)
	data, err := os.ReadFile(folder + "/environ")
	if err != nil {
		return false, false
	}
	if len(data) == 0 {
		data, err = os.ReadFile(folder + "/stat")
		s, ok := parse(data)
		return false, err == nil && ok && s.unread
	}
	for each := range bytes.SplitSeq(data, []byte{0}) {
		if string(each) == entry {
			return true, false
		}
	}
	return false, false
}
