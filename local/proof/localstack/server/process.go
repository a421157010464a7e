package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// Python runs a server as a Python program.
type Python struct {
	// Python is the Python executable of the environment in which LocalStack is installed. Java
	// is the executable that runs DynamoDB Local.
	Python, Java string
	// Plugin and DynamoDB are the folders of the plugin and of the jars. Home is a home folder.
	Plugin, DynamoDB, Home string
	// Path is the PATH of the server.
	Path string
}

func (p Python) start(_ context.Context, s Server) (state, error) {
	files := filepath.Join(s.Dir, "files")
	temporary := filepath.Join(files, "tmp")
	if err := os.MkdirAll(temporary, 0o750); err != nil {
		return state{}, fmt.Errorf("cannot create the server's folder: %w", err)
	}
	log, err := os.Create(s.Log())
	if err != nil {
		return state{}, fmt.Errorf("cannot create the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	// LocalStack ignores the last argument. It identifies the process.
	command := exec.Command(p.Python, "-m", "localstack.runtime.main", s.Dir)
	command.Dir, command.Stdout, command.Stderr = s.Dir, log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that the terminal's Ctrl-C does not reach it
	command.Env = append(
		s.settings(),
		"PATH="+p.Path, "HOME="+p.Home, "LANG=C.UTF-8", "PYTHONPATH="+p.Plugin, "PYTHONUNBUFFERED=1",
		// If the file /.dockerenv exists, LocalStack would otherwise use the root folder.
		"OVERRIDE_IN_DOCKER=0", "FILESYSTEM_ROOT="+files,
		// The code of functions is unpacked here.
		"TMPDIR="+temporary,
		"DYNAMODB_LOCAL="+p.DynamoDB, "SORTIE_JAVA="+p.Java, "SORTIE_LOCALSTACK="+s.Dir, "SORTIE_FUNCTIONS_LOG="+filepath.Join(s.Dir, "functions.log"),
	)
	if err := command.Start(); err != nil {
		return state{}, fmt.Errorf("cannot start LocalStack: %w", err)
	}
	pid := command.Process.Pid
	go func() { _ = command.Wait() }() // so that an early end is detected
	return state{PID: pid}, nil
}

// tableAbove is the port of DynamoDB Local relative to the server's port.
const tableAbove = 1002

// settings returns LocalStack's own variables, which are the same for Python and Docker.
func (s Server) settings() []string {
	return []string{
		"GATEWAY_LISTEN=127.0.0.1:" + strconv.Itoa(s.Port),
		// Disable all calls to the network.
		"DISABLE_EVENTS=1", "SKIP_SSL_CERT_DOWNLOAD=1", "DNS_ADDRESS=0",
		// Otherwise a request whose Origin or Referer is the API itself is refused, unlike on AWS.
		"DISABLE_CORS_CHECKS=1",
		"TZ=UTC",
		"LAMBDA_RUNTIME_EXECUTOR=local-process", "LAMBDA_SYNCHRONOUS_CREATE=1",
		// The default would retry a failed asynchronous invocation only after a minute.
		"LAMBDA_RETRY_BASE_DELAY=1",
		// A stream record reaches its function in 0.1 s instead of 1 s, even after a pause.
		"LAMBDA_EVENT_SOURCE_MAPPING_POLL_INTERVAL_SEC=0.1", "LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC=1",
		// Otherwise LocalStack accepts presigned URLs with any signature, age and length.
		"S3_SKIP_SIGNATURE_VALIDATION=0",
		// The other provider needs a Kinesis mock.
		"PROVIDER_OVERRIDE_DYNAMODB=v2", "DYNAMODB_IN_MEMORY=1",
		// Functions call DynamoDB Local directly. It has one database for all access keys.
		"DYNAMODB_LOCAL_PORT=" + strconv.Itoa(s.Port+tableAbove), "DYNAMODB_SHARE_DB=1",
		// Writing a log line for each call would be a tenth of the cost of the call.
		"LS_LOG=warning",
		"SORTIE_FUNCTIONS_TRUST=" + s.Trusted(),
	}
}

// lives reports whether the process or container is still running.
func (s state) lives(ctx context.Context) bool {
	if s.Container != "" {
		return s.running(ctx)
	}
	return syscall.Kill(s.PID, 0) == nil
}

// clear kills the processes of the server. They store nothing, and LocalStack needs ten seconds
// to end by itself.
func (s Server) clear(ctx context.Context) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for {
		left, err := s.processes(limit)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("cannot kill LocalStack: %w", err)
			}
		}
		if !s.pause(limit) {
			return fmt.Errorf("processes %v of LocalStack cannot be killed", left)
		}
	}
}

// Tail returns the end of the server's log.
func (s Server) Tail(ctx context.Context) string {
	noted, err := s.state()
	if err != nil {
		return step.Tail(s.Log())
	}
	return s.tail(ctx, noted)
}

// Functions returns the process IDs of the functions of a server that runs as a Python program.
func (s Server) Functions(ctx context.Context) ([]int, error) {
	return s.listed(ctx, func(line []byte) bool { return function(line, s.Dir) })
}

// processes returns the IDs of the processes whose command line has the folder of the server.
func (s Server) processes(ctx context.Context) ([]int, error) {
	return s.listed(ctx, func(line []byte) bool { return ofServer(line, s.Dir) })
}
