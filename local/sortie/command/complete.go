package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// completionTime limits the call that completes task ids.
const completionTime = 2 * time.Second

// named returns a completion function that reads names from the server. It completes one
// argument.
func (a *app) named(read func(context.Context, *client.Client) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		names, err := read(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// runIDs completes the ids of the server's newest runs.
func (a *app) runIDs() cobra.CompletionFunc {
	return a.named(func(ctx context.Context, c *client.Client) (ids []cobra.Completion, err error) {
		list, err := c.Tasks(ctx, client.Page{Limit: 50})
		for _, t := range list.Tasks {
			about := fmt.Sprintf("%s, %s, %s ago", t.State, display.Subject(t), display.Age(a.Clock.Now().Sub(t.CreatedAt)))
			ids = append(ids, cobra.CompletionWithDesc(t.TaskID, display.Clean(about)))
		}
		return ids, err
	})
}

// jobIDs completes the ids of the stored jobs.
func (a *app) jobIDs() cobra.CompletionFunc {
	return a.named(func(ctx context.Context, c *client.Client) (ids []cobra.Completion, err error) {
		list, err := c.Jobs(ctx, client.Page{Limit: 1000})
		for _, j := range list.Jobs {
			ids = append(ids, cobra.CompletionWithDesc(j.ID, display.Clean(j.Starts())))
		}
		return ids, err
	})
}

// poolIDs completes the ids of the server's pools.
func (a *app) poolIDs() cobra.CompletionFunc {
	return a.named(func(ctx context.Context, c *client.Client) (ids []cobra.Completion, err error) {
		list, err := c.Pools(ctx)
		for _, p := range list.Pools {
			ids = append(ids, cobra.CompletionWithDesc(p.ID, display.Clean(p.Runner)))
		}
		return ids, err
	})
}

// modelIDs completes the ids of the server's models.
func (a *app) modelIDs() cobra.CompletionFunc {
	return a.named(func(ctx context.Context, c *client.Client) (ids []cobra.Completion, err error) {
		list, err := c.Models(ctx, nil)
		for _, m := range list.Models {
			ids = append(ids, cobra.CompletionWithDesc(m.ID, display.Clean(m.State)))
		}
		return ids, err
	})
}

// webhookIDs completes the ids of the webhooks.
func (a *app) webhookIDs() cobra.CompletionFunc {
	return a.named(func(ctx context.Context, c *client.Client) (ids []cobra.Completion, err error) {
		list, err := c.Webhooks(ctx, "")
		for _, w := range list.Webhooks {
			ids = append(ids, cobra.CompletionWithDesc(w.ID, display.Clean(w.URL)))
		}
		return ids, err
	})
}

// completeNames registers the completions of the arguments and flags that name what the server
// has, and of the types of events. A command without an argument completes no files.
func (a *app) completeNames(c *cobra.Command) {
	flags := map[string]cobra.CompletionFunc{"job": a.jobIDs(), "run": a.runIDs(), "items-from": a.runIDs(), "pool": a.poolIDs()}
	for flag, names := range flags {
		if c.Flags().Lookup(flag) != nil && c.Flags().Lookup("url") != nil {
			argument.CompleteNames(c, flag, names)
		}
	}
	if c.Flags().Lookup("type") != nil {
		var types []string
		for _, info := range eventtype.All() {
			types = append(types, string(info.Type))
		}
		argument.CompleteList(c, "type", types)
	}
	if c.Flags().Lookup("priority") != nil {
		argument.Complete(c, "priority", "", []string{"interactive", "normal", "batch"})
	}
	if c.ValidArgsFunction == nil && c.Runnable() {
		_, words, _ := strings.Cut(c.Use, " ")
		switch word, _, _ := strings.Cut(words, " "); word {
		case "POOL":
			c.ValidArgsFunction = a.poolIDs()
		case "MODEL":
			if c.Parent().Name() == "models" { // "ask" sends the names that engines serve
				c.ValidArgsFunction = a.modelIDs()
			}
		case "WEBHOOK":
			c.ValidArgsFunction = a.webhookIDs()
		case "":
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	for _, of := range c.Commands() {
		a.completeNames(of)
	}
}

func states() []string {
	var names []string
	for _, s := range run.States() {
		names = append(names, string(s))
	}
	return names
}
