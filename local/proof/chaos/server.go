package chaos

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/local/twin/stacktest"
)

// heartbeatTimeout is short, so that a worker that stands still is declared dead
// while somebody looks, and long enough for a busy host.
const heartbeatTimeout = 5 * time.Second

// server is the stack, life after life.
type server struct {
	world   *world
	config  stacktest.Config
	process *stacktest.Process
	// addresses are those of its first life; workers were told them.
	addresses stack.Addresses
	lives     int
}

func newServer(w *world) *server {
	costly := 0
	for _, b := range w.injections {
		if b.target.strikesMachine() || b.target == stopStack || b.target == breakStop {
			costly++
		}
	}
	c := stacktest.Config{Data: w.folder, Program: workerProgram, Words: w.config.Foreign, Settings: map[string]string{
		"SORTIE_MAX_MACHINES": strconv.Itoa(machines),
		// As many as there are blows that may cost an attempt, and none more.
		"SORTIE_MAX_ATTEMPTS": strconv.Itoa(1 + costly), "SORTIE_FURTHER_STARTS": strconv.Itoa(costly),
		"SORTIE_RETRY_DELAY": "1s", "SORTIE_RETRY_MAX_DELAY": "1s",
		"SORTIE_HEARTBEAT_INTERVAL": "1s", "SORTIE_HEARTBEAT_TIMEOUT": heartbeatTimeout.String(), "SORTIE_CANCEL_GRACE": "3s",
	}}
	if w.source != nil {
		c.Source = w.source.URL + collections
	}
	return &server{world: w, config: c}
}

// launch starts a life and does not wait for it.
func (s *server) launch() (err error) {
	if s.process, err = stacktest.Launch(s.config, &s.world.log); err != nil {
		return err
	}
	s.lives++
	return nil
}

// up waits until the stack serves, and launches it where it is down.
func (s *server) up(ctx context.Context) error {
	if s.process == nil {
		if err := s.launch(); err != nil {
			return err
		}
	}
	select {
	case <-s.process.Ready():
	case <-s.process.Ended():
		return fmt.Errorf("life %d of the stack did not begin, or ended by itself", s.lives)
	case <-ctx.Done():
		return fmt.Errorf("life %d of the stack did not begin: %w", s.lives, ctx.Err())
	}
	if now := s.process.Addresses(); s.addresses.URL == "" {
		s.addresses = now
	} else if now != s.addresses {
		s.world.broken("the stack was at %+v and is at %+v; no worker finds it", s.addresses, now)
		return errors.New("the stack has moved")
	}
	return nil
}

// down ends the life by a signal. SIGTERM has to end it in order.
func (s *server) down(signal syscall.Signal) {
	code, err := s.process.End(signal)
	s.process = nil
	if err != nil {
		s.world.broken("%v", err)
	}
	if signal == syscall.SIGTERM && code != 0 {
		s.world.broken("the stack was asked to stop and exited with %d", code)
	}
}

// kill ends whatever there is, after the last look.
func (s *server) kill() {
	if s.process != nil {
		s.down(syscall.SIGKILL)
	}
}
