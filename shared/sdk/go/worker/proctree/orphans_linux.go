package proctree

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

const prGetChildSubreaper = 37 // linux/prctl.h

// ErrNoHandles means that this kernel has no handles of processes. ReapOrphans needs them to
// distinguish the children of this process from orphans.
var ErrNoHandles = errors.New("the kernel has no pidfd (Linux 5.4)")

// orphanSweep is the interval at which ReapOrphans searches without a signal.
const orphanSweep = 10 * time.Second

// Reaps reports whether the kernel makes orphans children of this process: as the first process
// of a container, or as a subreaper.
func Reaps() bool {
	if os.Getpid() == 1 {
		return true
	}
	var set int32
	_, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, prGetChildSubreaper, uintptr(unsafe.Pointer(&set)), 0) //nolint:gosec // G103: the system call writes there
	return failed == 0 && set != 0
}

// ReapOrphans waits for the orphans that became children of this process, until ctx ends. It
// does not wait for children that package os has started, so they keep their exit statuses.
// Those have an open handle until they are waited for.
func ReapOrphans(ctx context.Context) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	defer func() { _ = self.Release() }()
	if err := self.WithHandle(func(uintptr) {}); err != nil {
		return ErrNoHandles
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	again := time.NewTicker(orphanSweep)
	defer again.Stop()
	for {
		reapOrphans()
		select {
		case <-ended:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// reapOrphans waits for the orphans that have ended.
func reapOrphans() {
	own := map[int]bool{}
	addHandles(own) // of children that are waited for meanwhile
	zombies := zombieChildren()
	if len(zombies) == 0 {
		return
	}
	addHandles(own) // of children that were started meanwhile
	for _, pid := range zombies {
		if !own[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// zombieChildren returns the children of this process that have ended.
func zombieChildren() (pids []int) {
	self := os.Getpid()
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		s, ok := parse(data)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if ok && err == nil && s.state == 'Z' && s.parent == self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// addHandles adds the processes of the open handles of this process.
func addHandles(to map[int]bool) {
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		if name, err := os.Readlink(file); err != nil || !strings.Contains(name, "pidfd") {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + filepath.Base(file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(info)) {
			if text, ok := strings.CutPrefix(line, "Pid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
					to[pid] = true
				}
			}
		}
	}
}
