package stack

import (
	"errors"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

func (s *Stack) flyRunner() (orchestrator.Runner, error) { return nil, errors.New("not yet") }
