package stack

import "github.com/sortie-dev/sortie/shared/setting"

// OptionSettings configures parts of a stack that cost money or time, and that a stage
// may do without.
type OptionSettings struct{}

func (s *OptionSettings) settings() []setting.Setting { return nil }

func (s *OptionSettings) contradictions(*Settings) []error { return nil }
