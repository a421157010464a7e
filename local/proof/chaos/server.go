package chaos

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/twin/stack"
)

// heartbeatTimeout is short enough for a frozen worker to time out during the test, and long
// enough for a busy host.
const heartbeatTimeout = 5 * time.Second

// server is the stack across its restarts.
type server struct {
	world   *world
	config  stacktest.Config
	process *stacktest.Process
	// addresses are the addresses of the first start. Workers keep using them.
	addresses stack.Addresses
	// token is the token of the data folder.
	token  string
	starts int
}

func newServer(w *world) *server {
	costly := 0
	for _, b := range w.injections {
		if b.target.affectsMachine() || b.target == stopStack || b.target == breakStop {
			costly++
		}
	}
	c := stacktest.Config{Data: w.folder, Program: workerProgram, Words: w.config.Foreign, Settings: map[string]string{
		"SORTIE_MAX_MACHINES": strconv.Itoa(machines), "SORTIE_HOOK_ALLOW": "127.0.0.1",
		// Exactly as many retries as faults that may cost an attempt.
		"SORTIE_MAX_ATTEMPTS": strconv.Itoa(1 + costly), "SORTIE_FURTHER_STARTS": strconv.Itoa(costly),
		"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "1s",
		"SORTIE_HEARTBEAT_INTERVAL": "1s", "SORTIE_HEARTBEAT_TIMEOUT": heartbeatTimeout.String(), "SORTIE_CANCEL_GRACE": "3s",
	}}
	if w.source != nil {
		c.Source = w.source.URL + collections
	}
	return &server{world: w, config: c}
}

// launch starts the process. It does not wait until the stack serves.
func (s *server) launch() (err error) {
	if s.process, err = stacktest.Launch(s.config, &s.world.log); err != nil {
		return err
	}
	s.starts++
	return nil
}

// up waits until the stack serves. It starts the stack if it is down.
func (s *server) up(ctx context.Context) (err error) {
	if s.process == nil {
		if err := s.launch(); err != nil {
			return err
		}
	}
	select {
	case <-s.process.Ready():
	case <-s.process.Ended():
		return fmt.Errorf("start %d of the stack: the process ended by itself", s.starts)
	case <-ctx.Done():
		return fmt.Errorf("start %d of the stack: %w", s.starts, ctx.Err())
	}
	if now := s.process.Addresses(); s.addresses.URL == "" {
		s.addresses = now
		if s.token, err = stack.ReadToken(now.TokenFile); err != nil {
			return err
		}
	} else if !reflect.DeepEqual(now, s.addresses) {
		s.world.fail("addresses of the stack changed from %+v to %+v; workers cannot reach it", s.addresses, now)
		return errors.New("addresses of the stack changed")
	}
	return nil
}

// down ends the process with a signal. After SIGTERM it requires exit code 0.
func (s *server) down(signal syscall.Signal) {
	code, err := s.process.End(signal)
	s.process = nil
	if err != nil {
		s.world.fail("%v", err)
	}
	if signal == syscall.SIGTERM && code != 0 {
		s.world.fail("stack after SIGTERM: got exit code %d, want 0", code)
	}
}

// kill kills the process if it is running.
func (s *server) kill() {
	if s.process != nil {
		s.down(syscall.SIGKILL)
	}
}
