package flymachines

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// create returns a random duration for the answer to a creation.
func (d Delays) create(random io.Reader) (time.Duration, error) {
	span := d.CreateMost - d.CreateLeast
	if span <= 0 {
		return d.CreateLeast, nil
	}
	var bits [8]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return 0, fmt.Errorf("cannot draw a delay: %w", err)
	}
	return d.CreateLeast + time.Duration(binary.BigEndian.Uint64(bits[:])%uint64(span)), nil //nolint:gosec // below span
}

// delayCreation waits before the answer to a creation.
func (s *Server) delayCreation() error {
	s.mu.Lock()
	d, err := s.cfg.Delays.create(s.cfg.Random)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.delay(d)
}

// delay waits for d. It returns errClosing if the server closes first.
func (s *Server) delay(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	over, stop := s.cfg.Clock.NewTimer(d)
	defer stop()
	select {
	case <-over:
		return nil
	case <-s.closing:
		return errClosing
	}
}

// boot delays the start of the machine's program by Delays.Start. It returns false if the
// server closes first.
func (s *Server) boot(m *machine) bool {
	return s.cfg.Delays.Start == 0 || s.stay(m, &stuck{For: s.cfg.Delays.Start}, s.cfg.Clock.Now())
}
