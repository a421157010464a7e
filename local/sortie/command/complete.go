package command

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/run"
)

// completionTime limits the call that completes task ids.
const completionTime = 2 * time.Second

// taskIDs returns the ids of the server's newest tasks as completions.
func (a *app) taskIDs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	list, err := c.Tasks(ctx, client.Page{Limit: 50})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, t := range list.Tasks {
		about := fmt.Sprintf("%s, %s, %s ago", t.State, subject(t), age(a.Clock.Now().Sub(t.CreatedAt)))
		ids = append(ids, cobra.CompletionWithDesc(t.TaskID, display.Clean(about)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// subject says in a few words what a task is of.
func subject(t contract.Task) string {
	switch {
	case t.JobID != "":
		return "job " + t.JobID
	case t.Program != nil:
		return strings.Join(append([]string{t.Program.Image}, t.Program.Command...), " ")
	case t.Inference != nil:
		return "model " + t.Inference.Model
	}
	if t.Format == "" {
		return ""
	}
	return t.Format + " of " + t.PI
}

// brief is like subject, without the folders of programs and files on this machine.
func brief(t contract.Task) string {
	if t.JobID != "" || t.Program == nil {
		return subject(t)
	}
	var words []string
	for _, word := range append([]string{strings.TrimPrefix(t.Program.Image, execScheme)}, t.Program.Command...) {
		if path.IsAbs(word) {
			word = path.Base(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// complete registers values as completions of a flag, each with suffix appended.
func complete(c *cobra.Command, flag, suffix string, values []string) {
	completions := make([]cobra.Completion, 0, len(values))
	for _, v := range values {
		completions = append(completions, v+suffix)
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if suffix != "" {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(completions, directive)); err != nil {
		panic(err) // the caller has defined the flag
	}
}

// completeList registers completions of a flag that accepts several values, separated by
// commas.
func completeList(c *cobra.Command, flag string, values []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		given := strings.Split(before, ",")
		var rest []cobra.Completion
		for _, v := range values {
			if !slices.Contains(given, v) {
				rest = append(rest, before+v)
			}
		}
		return rest, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	if err != nil {
		panic(err) // the caller has defined the flag
	}
}

func states() []string {
	var names []string
	for _, s := range run.States() {
		names = append(names, string(s))
	}
	return names
}

// age formats a duration in one short word: "45s", "12m", "3h", "9d".
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
