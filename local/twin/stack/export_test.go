package stack

import "github.com/sortie-dev/sortie/shared/port"

// Feed returns the feed of a running stack.
func (s *Stack) Feed() port.Feed { return s.feed }
