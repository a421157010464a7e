package flymachines

import (
	"encoding/json"
	"fmt"
	"syscall"
)

// signalsByName are the signals of Fly's API by name.
func signalsByName() map[string]syscall.Signal {
	return map[string]syscall.Signal{
		"SIGABRT": syscall.SIGABRT, "SIGALRM": syscall.SIGALRM, "SIGFPE": syscall.SIGFPE,
		"SIGHUP": syscall.SIGHUP, "SIGILL": syscall.SIGILL, "SIGINT": syscall.SIGINT,
		"SIGKILL": syscall.SIGKILL, "SIGPIPE": syscall.SIGPIPE, "SIGQUIT": syscall.SIGQUIT,
		"SIGSEGV": syscall.SIGSEGV, "SIGTERM": syscall.SIGTERM, "SIGTRAP": syscall.SIGTRAP,
		"SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2,
	}
}

// parseSignal parses a signal's name; the empty name means no signal.
func parseSignal(name string) (syscall.Signal, error) {
	if name == "" {
		return 0, nil
	}
	if s, ok := signalsByName()[name]; ok {
		return s, nil
	}
	return 0, fmt.Errorf("unknown signal %q", name)
}

// signalValue is a signal in a request: a name, or a number (fly-go's kill).
type signalValue struct{ syscall.Signal }

// UnmarshalJSON accepts both spellings.
func (v *signalValue) UnmarshalJSON(data []byte) error {
	var number int
	if err := json.Unmarshal(data, &number); err == nil {
		for _, s := range signalsByName() {
			if int(s) == number {
				v.Signal = s
				return nil
			}
		}
		return fmt.Errorf("unknown signal %d", number)
	}
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return fmt.Errorf("want a signal as a name or a number: %w", err)
	}
	s, err := parseSignal(name)
	v.Signal = s
	return err
}
