package command_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/command"
)

// TestHelpSaysRunAndJob reads the help of all commands. A task is a state of the state machine
// there, or a tag of an artifact.
func TestHelpSaysRunAndJob(t *testing.T) {
	t.Parallel()
	task := regexp.MustCompile(`(?i)\btasks?\b`)
	var read func(c *cobra.Command)
	read = func(c *cobra.Command) {
		texts := []string{c.Use, c.Short, c.Long, strings.ReplaceAll(c.Example, "--tag task:", "")}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				texts = append(texts, f.Name+" "+f.Usage)
			}
		})
		for _, text := range texts {
			if task.MatchString(text) {
				t.Errorf("%s: got %q, want run", c.CommandPath(), text)
			}
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "asl" {
				read(sub)
			}
		}
	}
	read(command.Tree())
}

// TestWebhooksAreNoActions checks that the help separates the subscriptions of events from the
// action of the same name.
func TestWebhooksAreNoActions(t *testing.T) {
	t.Parallel()
	got := sortie(t, nil, "", "webhooks", "--help")
	for _, want := range []string{"events of all runs and jobs", `An action "type: webhook" of a job is no subscription`} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got\n%s\nwant %q", got.stdout, want)
		}
	}
}
