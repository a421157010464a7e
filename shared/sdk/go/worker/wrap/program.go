//go:build unix

package wrap

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

	"github.com/sortie-dev/sortie/shared/sdk/go/worker/proctree"
)

// program is a running process tree and its pipes.
type program struct {
	*proctree.Tree
	process Process
	copies  sync.WaitGroup
	readers []*proctree.Output
}

// The exit codes of sortie-exec itself.
const (
	exitSelf      = 125
	exitCannotRun = 126
	exitNotFound  = 127
)

// drainTimeout limits the wait for output that another process holds open after the program has
// ended.
const drainTimeout = time.Second

// streams are the destinations of a program's output. A nil writer means the wrapper's own
// stream. progress reads the progress pipe. stdin is the whole standard input; nil means the
// wrapper's own.
type streams struct {
	stdin          []byte
	stdout, stderr io.WriteCloser
	progress       func(io.Reader)
}

// start runs a program. The processes that it has started are killed when it ends. On Linux the
// kernel kills the program when this process ends.
func (process Process) start(argv, env []string, to streams) (*program, error) {
	name, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	p := &program{process: process}
	files := []*os.File{process.Stdin, process.Stdout, process.Stderr}
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
		output := proctree.NewOutput(r)
		p.readers, writers = append(p.readers, output), append(writers, w)
		p.copies.Go(func() { read(output) })
		return w, nil
	}
	if to.stdin != nil {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		files[0], writers = read, append(writers, read)
		// A program that does not read its input ends the writer with EPIPE.
		go func() { _, _ = write.Write(to.stdin); _ = write.Close() }()
	}
	for i, to := range []io.WriteCloser{nil, to.stdout, to.stderr} {
		if to != nil {
			if files[i], err = connect(func(r io.Reader) { _, _ = io.Copy(to, r); _ = to.Close() }); err != nil {
				return nil, err
			}
		}
	}
	file, err := connect(to.progress)
	if err != nil {
		return nil, err
	}
	files = append(files, file)
	env = append(env, fmt.Sprintf("SORTIE_PROGRESS_FD=%d", len(files)-1))
	if p.Tree, err = proctree.Start(name, argv, os.ProcAttr{Env: env, Files: files}, process.Group); err != nil {
		p.disconnect()
		return nil, err
	}
	return p, nil
}

// exitOf returns the exit code for a program that could not be started.
func exitOf(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return exitNotFound
	}
	return exitCannotRun
}

// signal sends a signal to the process group.
func (p *program) signal(s syscall.Signal) { _ = p.Signal(s) }

// wait returns how the program ended. It forwards signals. When ctx ends, it sends SIGTERM, and
// SIGKILL after grace.
func (p *program) wait(ctx context.Context, signals <-chan os.Signal, grace func() time.Duration) end {
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
		case status := <-p.Ended():
			if err := p.Kill(); err != nil {
				fmt.Fprintf(p.process.Stderr, "sortie-exec: cannot end what the program has started: %v\n", err)
			}
			p.drain()
			return endOf(status)
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

// drain reads the rest of the output. It waits at most drainTimeout for another process that
// holds a pipe open. What a pipe holds by then is read, because this process may be late itself.
func (p *program) drain() {
	late := time.AfterFunc(drainTimeout, func() {
		for _, r := range p.readers {
			_ = r.Stop()
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
