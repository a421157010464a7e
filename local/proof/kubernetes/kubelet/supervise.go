//go:build linux

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// firstProcess is the argument that makes Supervise the first process of a node's namespaces.
const firstProcess = "first-process"

// Supervise runs the supervisor of a node, or its first process. It returns the exit code.
func Supervise(args []string) int {
	var err error
	switch {
	case len(args) == 1:
		err = supervise(args[0])
	case len(args) == 2 && args[1] == firstProcess:
		err = runNode(args[0])
	default:
		err = errors.New("malformed call of a node")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func readSettings(file string) (s settings, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: written by Start
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// supervise runs the first process until standard input ends. It then removes the node's data
// and control group.
func supervise(file string) (err error) {
	runtime.LockOSThread() // the kernel ends the first process with this thread
	s, err := readSettings(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeGroup(s.Group), os.RemoveAll(s.Data)) }()
	if err := createGroup(s.Group); err != nil {
		return err
	}
	first := exec.Command("/proc/self/exe", append(os.Args[1:], firstProcess)...) //nolint:gosec,noctx // G204: this program; it is killed below
	first.Stdout, first.Stderr = os.Stderr, os.Stderr
	first.Env = s.Env
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := first.Start(); err != nil {
		return fmt.Errorf("cannot create the namespaces of a node: %w", err)
	}
	closed := make(chan error, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		closed <- err
	}()
	go func() { ended <- first.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("the node ended: %w", err)
	case err = <-closed:
	}
	_ = first.Process.Kill() // an error if it has ended
	if killed := <-ended; killed == nil {
		err = errors.Join(err, errors.New("the node ended by itself"))
	}
	return err // the end of the first process has ended all processes of its namespace
}

// runNode is the first process. It mounts the node's folders, starts its programs and returns
// when one of them has ended.
func runNode(file string) error {
	s, err := readSettings(file)
	if err != nil {
		return err
	}
	if err := mountNode(s); err != nil {
		return fmt.Errorf("cannot make the mounts of a node: %w", err)
	}
	pids := map[int]string{}
	for _, command := range [][]string{s.Engine, s.Kubelet} {
		name := filepath.Base(command[0])
		log, err := os.OpenFile(filepath.Join(s.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // G304: a folder of the node
		if err != nil {
			return err
		}
		program, err := os.StartProcess(command[0], command, &os.ProcAttr{Env: s.Env, Dir: "/", Files: []*os.File{nil, log, log}})
		if err = errors.Join(err, log.Close()); err != nil {
			return fmt.Errorf("cannot start %s: %w", name, err)
		}
		pids[program.Pid] = name
	}
	for { // as the first process, it also reaps orphans
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if name, ours := pids[pid]; ours {
			return fmt.Errorf("%s ended with status %d", name, status)
		}
	}
}

// kernelSettings are the kernel settings that the kubelet changes.
var kernelSettings = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

// mountNode mounts the node's own folders, and copies over the kernel settings.
func mountNode(s settings) error {
	mount := func(source, target, kind string, flags uintptr, options string) error {
		if err := syscall.Mount(source, target, kind, flags, options); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		return nil
	}
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	err := errors.Join(
		mount("proc", "/proc", "proc", 0, ""),
		mount("overlay", "/usr", "overlay", syscall.MS_RDONLY, "lowerdir="+filepath.Join(s.Packages, "usr")+":/usr"),
		mount("tmpfs", "/run", "tmpfs", 0, "mode=755"),
		mount("tmpfs", "/var/lib", "tmpfs", 0, "mode=755"),
		mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755"),
	)
	for i, name := range kernelSettings {
		setting := filepath.Join("/proc/sys", name)
		value, missing := os.ReadFile(setting) //nolint:gosec // G304: a constant of the kernel
		if missing != nil {
			continue // the kubelet does not find it either
		}
		own := fmt.Sprintf("/run/setting-%d", i)
		err = errors.Join(err, os.WriteFile(own, value, 0o600), mount(own, setting, "", syscall.MS_BIND, "")) //nolint:gosec // G703: a folder of the node
	}
	return err
}
