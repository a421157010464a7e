//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// serveCommand is the argument with which this program becomes the service.
const serveCommand = "serve"

// service is a Podman service in its own mount namespace.
type service struct {
	address string
	dir     string
	process *exec.Cmd
	ended   chan error
	log     *os.File
}

// start starts the service with an empty store in a temporary folder.
func start(ctx context.Context) (_ *service, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root; set DOCKER_HOST to an engine, such as unix://$XDG_RUNTIME_DIR/podman/podman.sock")
	}
	root := "" // Podman of the system
	if _, err := exec.LookPath("podman"); err != nil {
		if root, err = fetch(ctx); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "sortie-podman-")
	if err != nil {
		return nil, err
	}
	s := &service{dir: dir, ended: make(chan error, 1)}
	socket := filepath.Join(dir, "podman.sock")
	s.address = "unix://" + socket
	if err := configure(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.log, err = os.Create(filepath.Join(dir, "log")); err != nil { //nolint:gosec // G304: a folder of this process
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.process = exec.Command(self, serveCommand, root, dir) //nolint:gosec,noctx // G204: this program; stop ends it
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.Dir = dir // conmon leaves files in it
	s.process.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() { s.ended <- s.process.Wait() }()
	if err := s.ready(ctx, socket); err != nil {
		text, _ := os.ReadFile(s.log.Name())
		return nil, errors.Join(fmt.Errorf("podman does not start: %w: %s", err, text), s.stop())
	}
	return s, nil
}

// readyLimit limits the time until the service listens.
const readyLimit = time.Minute

// ready waits until the service listens.
func (s *service) ready(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the service ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop removes the containers, ends the service and removes its folder.
func (s *service) stop() error {
	remove := exec.Command("nsenter", "-t", fmt.Sprint(s.process.Process.Pid), "-m", "podman", "rm", "--all", "--force", "--time", "0") //nolint:gosec,noctx // G204: a process id
	remove.Env = environment(s.dir)
	text, err := remove.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cannot remove the containers: %w: %s", err, text)
	}
	_ = s.process.Process.Signal(syscall.SIGTERM) // an error if it has ended
	if ended := <-s.ended; ended != nil && s.process.ProcessState.ExitCode() > 0 {
		err = errors.Join(err, fmt.Errorf("the service failed: %w", ended))
	}
	return errors.Join(err, s.log.Close(), os.RemoveAll(s.dir))
}

// serve becomes the service. It mounts the files of root over /usr in its mount namespace.
func serve(args []string) error {
	if len(args) != 2 {
		return errors.New("malformed call of the service")
	}
	root, dir := args[0], args[1]
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	if root != "" {
		if err := syscall.Mount("overlay", "/usr", "overlay", syscall.MS_RDONLY, "lowerdir="+filepath.Join(root, "usr")+":/usr"); err != nil {
			return fmt.Errorf("cannot mount %s over /usr: %w", root, err)
		}
	}
	podman, err := exec.LookPath("podman")
	if err != nil {
		return err
	}
	return syscall.Exec(podman, []string{"podman", "system", "service", "--time", "0", "unix://" + filepath.Join(dir, "podman.sock")}, environment(dir)) //nolint:gosec // G204: Podman
}

// environment returns variables with which Podman uses only the configuration in the folder.
func environment(dir string) []string {
	return []string{
		"HOME=" + dir, "PATH=" + searchPath() + ":/usr/sbin:/sbin", "CONTAINERS_CONF=" + filepath.Join(dir, "containers.conf"), "CONTAINERS_STORAGE_CONF=" + filepath.Join(dir, "storage.conf"),
		"CONTAINERS_REGISTRIES_CONF=" + filepath.Join(dir, "registries.conf"),
	}
}

// configure writes Podman's configuration: its own store, networks and images. Containers get
// the limits of this process, which may not raise them.
func configure(dir string) error {
	limit := func(resource int) uint64 {
		var l syscall.Rlimit
		if err := syscall.Getrlimit(resource, &l); err != nil {
			return 1024
		}
		return min(l.Max, 1<<20)
	}
	const processes = 6         // RLIMIT_NPROC
	const mostProcesses = 32768 // Podman sets this limit for itself
	for name, text := range map[string]string{
		"containers.conf": fmt.Sprintf("[containers]\ndefault_sysctls = []\ndefault_ulimits = [\"nofile=%[1]d:%[1]d\", \"nproc=%[2]d:%[2]d\"]\n"+
			"[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\ntmp_dir = %[3]q\n"+
			"[network]\nnetwork_backend = \"cni\"\nnetwork_config_dir = %[4]q\n",
			limit(syscall.RLIMIT_NOFILE), min(limit(processes), mostProcesses), filepath.Join(dir, "tmp"), filepath.Join(dir, "networks")),
		"storage.conf":                   fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(dir, "images"), filepath.Join(dir, "run")),
		"registries.conf":                "unqualified-search-registries = []\n",
		".config/containers/policy.json": `{"default": [{"type": "insecureAcceptAnything"}]}`,
		"networks/.keep":                 "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
