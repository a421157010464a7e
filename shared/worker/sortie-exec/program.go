//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// program is a process with a group of its own, and what it is connected to.
type program struct {
	pid     int
	ended   chan end
	copies  sync.WaitGroup
	readers []*os.File
}

// The exit codes that are sortie-exec's own.
const (
	exitSelf      = 125
	exitCannotRun = 126
	exitNotFound  = 127
)

// drainTime is how long output is waited for that others than the program hold
// open.
const drainTime = time.Second

// streams are where a program's output goes. A nil writer is the wrapper's own
// stream; nil notes are no progress.
type streams struct {
	stdout, stderr io.Writer
	notes          func(io.Reader)
}

// start runs a program. Its group dies with it, and where the system can, it
// dies with this process.
func start(argv, env []string, to streams) (*program, error) {
	name, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	p := &program{ended: make(chan end, 1)}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	var writers []*os.File
	defer func() {
		for _, w := range writers {
			_ = w.Close()
		}
	}()
	connect := func(read func(io.Reader)) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.readers, writers = append(p.readers, r), append(writers, w)
		p.copies.Go(func() { read(r) })
		return w, nil
	}
	for i, to := range []io.Writer{nil, to.stdout, to.stderr} {
		if to != nil {
			if files[i], err = connect(func(r io.Reader) { _, _ = io.Copy(to, r) }); err != nil {
				return nil, err
			}
		}
	}
	if to.notes != nil {
		file, err := connect(to.notes)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		env = append(env, fmt.Sprintf("SORTIE_PROGRESS_FD=%d", len(files)-1))
	}
	adopt()
	process, err := os.StartProcess(name, argv, &os.ProcAttr{Env: env, Files: files, Sys: attributes()})
	if err != nil {
		p.disconnect()
		return nil, err
	}
	p.pid = process.Pid
	_ = process.Release() // reap waits for it
	go p.reap()
	return p, nil
}

// exitOf is the exit code of a program that could not be started.
func exitOf(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return exitNotFound
	}
	return exitCannotRun
}

// reap waits for the program and for all that were left to this process, until
// there are none: so a container's first process leaves no zombies.
func (p *program) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return
		case pid == p.pid && (status.Exited() || status.Signaled()):
			p.ended <- endOf(status)
		}
	}
}

// signal tells the program's whole group.
func (p *program) signal(s syscall.Signal) { _ = syscall.Kill(-p.pid, s) }

// attend waits for the program's end. Signals are passed on; when ctx ends it
// gets SIGTERM, and SIGKILL after grace.
func (p *program) attend(ctx context.Context, signals <-chan os.Signal, grace func() time.Duration) end {
	stop := ctx.Done()
	kill := make(chan struct{})
	var killing *time.Timer
	defer func() {
		if killing != nil {
			killing.Stop()
		}
	}()
	for {
		select {
		case e := <-p.ended:
			p.signal(syscall.SIGKILL) // what is left of its group
			p.drain()
			return e
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				p.signal(number)
			}
		case <-stop:
			stop = nil
			p.signal(syscall.SIGTERM)
			killing = time.AfterFunc(grace(), func() { close(kill) })
		case <-kill:
			kill = nil
			p.signal(syscall.SIGKILL)
		}
	}
}

// drain waits until the output is read, but not for somebody else who holds it
// open.
func (p *program) drain() {
	late := time.AfterFunc(drainTime, func() {
		for _, r := range p.readers {
			_ = r.SetReadDeadline(time.Unix(1, 0))
		}
	})
	defer late.Stop()
	p.copies.Wait()
	p.disconnect()
}

func (p *program) disconnect() {
	for _, r := range p.readers {
		_ = r.Close()
	}
}
