package stack

import (
	"fmt"
	"strconv"
)

// readersShare is the divisor for the part of the reserved concurrency of the function stream
// that is left to refuse readers: one execution in ten, and at least one.
const readersShare = 10

// totalReaders returns how many event streams all tenants together can have open. The number is
// less than the reserved concurrency of their function. ok is false without a reserved
// concurrency.
func (s *Settings) totalReaders() (total int, ok bool) {
	n := s.Reserved["stream"]
	return n - max(n/readersShare, 1), n > 0
}

// readers returns the variables of the function stream.
func (s *Settings) readers() map[string]string {
	env := map[string]string{"SORTIE_READERS": strconv.Itoa(s.Readers)}
	if total, ok := s.totalReaders(); ok {
		env["SORTIE_READERS_TOTAL"] = strconv.Itoa(total)
	}
	return env
}

// readersProblem returns a problem if a tenant may open more streams than all tenants together.
func (s *Settings) readersProblem() error {
	if total, ok := s.totalReaders(); ok && total < s.Readers {
		return fmt.Errorf("readers: %d are more than the %d that reserved=stream=%d leaves to all tenants", s.Readers, total, s.Reserved["stream"])
	}
	return nil
}
