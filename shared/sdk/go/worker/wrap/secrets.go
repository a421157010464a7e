//go:build unix

package wrap

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// secretsOf returns the secret values of a task and its environment.
func secretsOf(a worker.Assignment, environ []string) []string {
	secrets := []string{a.CallbackURL}
	if e := a.Envelope; e != nil {
		secrets = append(secrets, e.TaskToken)
		var presigned []string
		for _, upload := range []*contract.Upload{e.Output, e.Log} {
			if upload != nil {
				presigned = append(presigned, upload.URL)
			}
		}
		if e.Program != nil && e.Program.Input != nil {
			presigned = append(presigned, e.Program.Input.URL)
		}
		for _, address := range presigned {
			if u, err := url.Parse(address); err == nil {
				secrets = append(secrets, u.RawQuery)
			}
		}
	}
	for _, entry := range environ {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY", "CALLBACK_URL":
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// secretValues returns the values of the variables that the task names as secrets.
func secretValues(a worker.Assignment, environ []string) []string {
	var values []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if a.Envelope != nil && a.Envelope.Program != nil && slices.Contains(a.Envelope.Program.SecretVariables, name) {
			values = append(values, value)
		}
	}
	return values
}
