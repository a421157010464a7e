package inferences_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/inference"
)

// shown is a log buffer that is safe for concurrent use.
type shown struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shown) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(s.text.String(), "\n")
}

// TestEventsOfClientsNameThemInTheLog creates and cancels a task.
func TestEventsOfClientsNameThemInTheLog(t *testing.T) {
	t.Parallel()
	log := &shown{}
	h := newInferring(t, 1, 1, func(h *inferring) { h.log = slog.NewTextHandler(log, nil) })
	who := client
	who.Subject, who.Scopes = "token:abcdef", access.Scopes()
	task := h.ask(2, func(in *inferences.NewTask) { in.Identity = who })
	h.read(task, inference.EventID{})
	h.ended(task)
	for _, line := range log.lines() {
		if accepted := strings.Contains(line, "msg=job.accepted"); strings.Contains(line, task) && strings.Contains(line, "identity=token:abcdef") != accepted {
			t.Errorf("got the line %s, want the identity with what the client caused alone", line)
		}
	}
}
