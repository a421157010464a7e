package argument

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteNames completes a flag like an argument.
func CompleteNames(c *cobra.Command, flag string, names cobra.CompletionFunc) {
	err := c.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return names(cmd, nil, typed)
	})
	if err != nil {
		panic(err) // the caller has defined the flag
	}
}

// Complete registers values as completions of a flag, each with suffix appended.
func Complete(c *cobra.Command, flag, suffix string, values []string) {
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

// CompleteList registers completions of a flag that accepts several values, separated by
// commas.
func CompleteList(c *cobra.Command, flag string, values []string) {
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
