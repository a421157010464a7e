package clients

// The names of the secrets that jobs of the suite refer to.
const (
	HookSecret     = "suite-hook"
	PasswordSecret = "suite-password"
	SensorSecret   = "suite-sensor"
	ServiceSecret  = "suite-service"
)

// Secrets returns the values of the secrets, by name. The deployment must have them for the
// tenant of the suite's token.
func Secrets() map[string]string {
	return map[string]string{ //nolint:gosec // G101: values for tests
		HookSecret:     "whsec_c3VpdGUtb2YtdGhlLWJsYWNrLWJveC10ZXN0cy0wMDE=",
		PasswordSecret: "open-sesame-of-the-suite",
		SensorSecret:   "AKIASUITE:suite/sensor+secret",
		ServiceSecret:  "sk-key-of-the-suite-0123456789",
	}
}
