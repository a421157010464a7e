package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) webhooks() *cobra.Command {
	c := a.Resources("webhooks", "Subscribe addresses to events, and look at deliveries",
		a.webhooksCreate(), a.webhooksList(),
		&cobra.Command{
			Use: "show WEBHOOK", Short: "Show a webhook and the progress of its deliveries", Example: "  sortie webhooks show whk_01KJM74XY0H3ZZ5T605S8SXKKV",
			RunE: cli.Printed(a.App, cli.ByID((*client.Client).Webhook), func(w contract.WebhookDetail) error { return a.Result(w, "%s\n", a.Webhook(w)) }),
		},
		&cobra.Command{
			Use: "test WEBHOOK", Short: "Send a test event", Example: "  sortie webhooks test whk_01KJM74XY0H3ZZ5T605S8SXKKV",
			RunE: cli.Printed(a.App, cli.ByID((*client.Client).TestWebhook), a.showTest),
		},
		a.webhooksRotate(), a.webhooksDeliveries(), a.webhooksRedeliver(), a.webhooksRecover(),
		a.Removal(&cobra.Command{
			Use: "delete WEBHOOK", Short: "Delete a webhook with its log", Example: "  sortie webhooks delete whk_01KJM74XY0H3ZZ5T605S8SXKKV",
		}, "deleted", (*client.Client).DeleteWebhook),
		a.webhooksListen())
	c.Long = `Subscribe addresses to the events of all runs and jobs, and look at deliveries.

An action "type: webhook" of a job is no subscription: it calls its own address when a
run of that job fails, succeeds or is skipped.`
	return c
}

func (a *app) webhooksCreate() *cobra.Command {
	var in contract.WebhookSettings
	c := &cobra.Command{
		Use: "create URL", Short: "Subscribe an address to events",
		Long: `Subscribe an address to the events of the tenant from now on. The command prints the
secret that signs the deliveries; it is not shown again.`,
		Example: "  sortie webhooks create https://hooks.example.org/sortie --type job.completed,job.failed",
	}
	flags := c.Flags()
	flags.StringSliceVar(&in.EventTypes, "type", nil, "only these types, such as job.failed or schedule.*")
	runFlag(c, &in.TaskID)
	flags.StringVar(&in.JobID, "job", "", "only events of this stored job")
	eventLabelFlag(flags, &in.Label)
	parentFlag(flags, &in.ParentRunID)
	flags.StringVar(&in.BatchID, "batch", "", "only events of runs of this batch")
	flags.StringVar(&in.ProjectID, "project", "", "only events of this project")
	flags.StringVar(&in.Description, "description", "", "a text for people")
	flags.BoolVar(&in.Ordered, "ordered", false, "send the events of a run one after another")
	flags.IntVar(&in.RateLimit, "rate-limit", 0, "attempts per second; 0 is no limit")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		in.URL = args[0]
		w, err := c.CreateWebhook(ctx, in, uuid.Must(uuid.NewV7()).String()) // the id contains its creation time
		if err != nil {
			return err
		}
		return a.webhookSecret(w)
	})
	return c
}

// webhookSecret prints a webhook with its new secret.
func (a *app) webhookSecret(w contract.WebhookDetail) error {
	a.Note("the secret is shown this once")
	return a.Result(w, "%s\n%s\n", w.ID, w.Secret)
}

func (a *app) webhooksList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the webhooks, by id", Example: "  sortie webhooks list",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all := contract.WebhookList{Webhooks: []contract.Webhook{}}
			err := cli.Pages(0, func(cursor string) (int, string, error) {
				list, err := c.Webhooks(ctx, cursor)
				all.Webhooks = append(all.Webhooks, list.Webhooks...)
				return len(all.Webhooks), list.NextCursor, err
			})
			if err != nil {
				return err
			}
			t := display.NewTable("WEBHOOK", "STATUS", "EVENTS", "URL", "DESCRIPTION")
			for _, w := range all.Webhooks {
				status := contract.WebhookActive
				switch {
				case w.DisabledReason != "":
					status = contract.WebhookDisabled
				case w.Paused:
					status = contract.WebhookPaused
				}
				t.Row(w.ID, status, display.EventTypes(w), display.Clean(w.URL), display.Clean(w.Description))
			}
			return a.Table(all, t)
		}),
	}
}

// showTest prints the result of a test event.
func (a *app) showTest(attempt contract.WebhookAttempt) error {
	if !a.JSON && (attempt.Status < 200 || attempt.Status > 299) {
		return fmt.Errorf("the receiver did not accept the event: %s", display.Delivery(attempt))
	}
	return a.Result(attempt, "%s\n", display.Delivery(attempt))
}

func (a *app) webhooksRotate() *cobra.Command {
	var now bool
	c := &cobra.Command{
		Use: "rotate WEBHOOK", Short: "Add a secret to a webhook",
		Long: `Add a secret to a webhook, which the command prints once. The older secret signs for 24
hours more. With --now no older secret signs any more: for one that others have seen.
Deliveries fail then until the receiver knows the new one.`,
		Example: "  sortie webhooks rotate whk_01KJM74XY0H3ZZ5T605S8SXKKV\n  sortie webhooks rotate whk_01KJM74XY0H3ZZ5T605S8SXKKV --now",
	}
	c.Flags().BoolVar(&now, "now", false, "revoke the older secrets at once")
	c.RunE = a.WithClient(func(ctx context.Context, cl *client.Client, args []string) error {
		w, err := cl.RotateWebhook(ctx, args[0], now)
		if err != nil {
			return err
		}
		return a.webhookSecret(w)
	})
	return c
}

func (a *app) webhooksDeliveries() *cobra.Command {
	var state string
	var limit int
	c := &cobra.Command{
		Use: "deliveries WEBHOOK", Short: "Show the newest deliveries of a webhook",
		Example: "  sortie webhooks deliveries whk_01KJM74XY0H3ZZ5T605S8SXKKV --state failed",
	}
	c.Flags().StringVar(&state, "state", "", "only those that are pending, delivered or failed")
	c.Flags().IntVar(&limit, "limit", 50, "how many, 1 to 1000")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		log, err := c.WebhookDeliveries(ctx, args[0], state, limit)
		if err != nil {
			return err
		}
		t := display.NewTable("POSITION", "EVENT", "RUN", "STATE", "TRIES", "NEXT", "LAST RESULT")
		for _, d := range log.Deliveries {
			next, last := "", ""
			if !d.NextAttemptAt.IsZero() {
				next = a.Moment(d.NextAttemptAt)
			}
			if n := len(d.Attempts); n > 0 {
				last = display.Delivery(d.Attempts[n-1])
			}
			t.Row(strconv.FormatInt(d.Position, 10), d.EventType, d.TaskID, d.State, strconv.Itoa(d.Tries), next, last)
		}
		return a.Table(log, t)
	})
	return c
}

func (a *app) webhooksRedeliver() *cobra.Command {
	return &cobra.Command{
		Use: "redeliver WEBHOOK FROM TO", Short: "Send events again, by their positions",
		Long: `Send the events of a webhook in a range of positions once more, also those that were
delivered or missed. The command deliveries shows positions, the command show those that
were missed.`,
		Example: "  sortie webhooks redeliver whk_01KJM74XY0H3ZZ5T605S8SXKKV 17 17",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			var ends [2]int64
			for i, text := range args[1:] {
				var err error
				if ends[i], err = strconv.ParseInt(text, 10, 64); err != nil {
					return cli.Wrong("malformed position %q, want a number", text)
				}
			}
			return a.redeliver(ctx, c, args[0], contract.RedeliverRequest{From: &ends[0], To: &ends[1]})
		}),
	}
}

func (a *app) webhooksRecover() *cobra.Command {
	var since string
	c := &cobra.Command{
		Use: "recover WEBHOOK", Short: "Send again what has failed since a time",
		Long: `Send the events of a webhook since a time once more whose delivery has failed, and those
that it missed while it was paused or disabled. Events that were delivered are not sent
again.`,
		Example: "  sortie webhooks recover whk_01KJM74XY0H3ZZ5T605S8SXKKV --since 2h\n  sortie webhooks recover whk_01KJM74XY0H3ZZ5T605S8SXKKV --since 2026-03-01T12:00:00Z",
	}
	c.Flags().StringVar(&since, "since", "", "a duration such as 2h, or an RFC 3339 time (required)")
	argument.Require(c, "since")
	c.RunE = a.WithClient(func(ctx context.Context, cl *client.Client, args []string) error {
		from, err := sinceTime(since, a.Clock.Now())
		if err != nil {
			return err
		}
		return a.redeliver(ctx, cl, args[0], contract.RedeliverRequest{FailedSince: &from})
	})
	return c
}

func (a *app) redeliver(ctx context.Context, c *client.Client, id string, what contract.RedeliverRequest) error {
	again, err := c.Redeliver(ctx, id, what)
	if err != nil {
		return err
	}
	return a.Result(again, "%d events are sent again\n", again.Events)
}
