package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// eventFlags select events.
type eventFlags struct {
	types  []string
	label  string
	filter events.Filter
	after  string
}

func (f *eventFlags) add(c *cobra.Command, after string) {
	f.addFilter(c)
	c.Flags().StringVar(&f.after, "after", after, "begin behind this cursor, or at earliest or latest")
}

func (f *eventFlags) addFilter(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.types, "type", nil, "only these types, such as job.failed or schedule.*")
	runFlag(c, &f.filter.TaskID)
	eventLabelFlag(flags, &f.label)
	parentFlag(flags, &f.filter.ParentRunID)
	flags.StringVar(&f.filter.JobID, "job", "", "only events of this stored job")
	flags.StringVar(&f.filter.ProjectID, "project", "", "only events of this project")
}

// runFlag defines --run, which selects the events of a run.
func runFlag(c *cobra.Command, id *string) {
	c.Flags().StringVar(id, "run", "", "only events of this run")
	c.Flags().StringVar(id, "task", "", "")
	if err := c.Flags().MarkHidden("task"); err != nil { // its earlier name
		panic(err)
	}
}

func (f *eventFlags) query() (url.Values, error) {
	f.filter.Types, f.filter.Label = f.types, label.QueryOf(f.label)
	if err := f.filter.Check(); err != nil {
		return nil, cli.Wrong("--type: %v", err)
	}
	if err := f.filter.Label.Check(); err != nil {
		return nil, cli.Wrong("--selector: %v", err)
	}
	return api.FilterQuery(f.filter), nil
}

func (a *app) eventsTail() *cobra.Command {
	var f eventFlags
	c := &cobra.Command{
		Use: "tail", Short: "Show events as they come",
		Long: `Show the events of the tenant as they come, until an interrupt. The command connects
again by itself, and continues where it was. With --json each line is an envelope.`,
		Example: "  sortie events tail\n  sortie events tail --type job.failed,schedule.* --json\n  sortie events tail --run export_mods_1704857234567_a3f8c2d1 --after earliest",
	}
	f.add(c, client.Latest)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		query, err := f.query()
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		// Show events after this request, even if the stream opens later.
		page, err := c.EventPage(ctx, query, client.Latest, 1)
		if err != nil {
			return err
		}
		at := f.after
		if at == client.Latest {
			at = page.Next
		}
		retrying := c.WithRetry(math.MaxInt64, func(err error) { a.Note("%v; trying again", err) })
		err = retrying.FollowEvents(ctx, query, &at, a.showEvent)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an interrupt ends the command
		}
		return err
	})
	return c
}

// showEvent prints an event or a gap of the stream.
func (a *app) showEvent(document json.RawMessage) error {
	var gap contract.Gap
	if err := json.Unmarshal(document, &gap); err == nil && gap.EventType == contract.StreamGap {
		a.Note("the events after %s are gone; continuing with the oldest, %s", display.Clean(gap.Asked), display.Clean(gap.Oldest))
		return nil
	}
	if a.JSON {
		return a.Say("%s\n", display.EscapeJSON(document))
	}
	e, err := events.Parse(document)
	if err != nil {
		return fmt.Errorf("cannot read an event: %w", err)
	}
	return a.Say("%s\n", strings.Join(a.Event(e), "  "))
}

func (a *app) eventsList() *cobra.Command {
	var f eventFlags
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List events, newest first",
		Long: `List the newest events of the tenant, newest first. With --after, list a page behind
that cursor, oldest first. The cursor of what follows is on standard error, and in the
JSON.`,
		Example: "  sortie events list --type job.failed --limit 20\n  sortie events list --after CURSOR",
	}
	f.add(c, "")
	c.Flags().IntVar(&limit, "limit", 100, "number of events, 1 to 1000")
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		query, err := f.query()
		if err != nil {
			return err
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		if limit < 1 || limit > 1000 {
			return cli.Wrong("--limit: %d is out of range, want 1 to 1000", limit)
		}
		all := true
		var page contract.EventPage
		if f.after == "" {
			page, all, err = c.NewestEvents(ctx, f.filter, limit)
		} else {
			page, err = c.EventPage(ctx, query, f.after, limit)
		}
		if err != nil {
			return err
		}
		if !all {
			a.Note("Only the newest %d events were searched; --after earliest begins with the oldest.", client.SearchedEvents)
		}
		if a.JSON {
			return a.Print(page)
		}
		t := display.NewTable("TIME", "EVENT", "ABOUT", "")
		for _, document := range page.Events {
			e, err := events.Parse(document)
			if err != nil {
				return fmt.Errorf("cannot read an event: %w", err)
			}
			t.Row(a.Event(e)...)
		}
		_, err = t.WriteTo(a.Stdout)
		a.Note("what follows: --after %s", display.Clean(page.Next))
		return err
	})
	return c
}

func (a *app) eventsExport() *cobra.Command {
	after := client.Earliest
	c := &cobra.Command{
		Use: "export FILE", Short: "Save signed events to a file",
		Long: `Save the signed events of the tenant with the checkpoints of the stream to a file, one
on each line, up to the newest event. "sortie events verify" proves that the file is
complete. FILE may be -, standard output. The last checkpoint of a stream is written
within a minute after its last event.`,
		Example: "  sortie events export events.ndjson",
	}
	c.Flags().StringVar(&after, "after", client.Earliest, "begin behind this cursor")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		at := after
		export := func(to io.Writer) (count int, err error) {
			for {
				lines, next, err := c.SignedEvents(ctx, at)
				if err != nil {
					return count, err
				}
				if next == at {
					return count, nil
				}
				if _, err := to.Write(lines); err != nil {
					return count, fmt.Errorf("cannot write %s: %w", args[0], err)
				}
				at, count = next, count+strings.Count(string(lines), "\n")
			}
		}
		if args[0] == "-" {
			_, err := export(a.Stdout)
			return err
		}
		count, err := writeWhole(args[0], export)
		if err != nil {
			return err
		}
		return a.Result(map[string]any{"file": args[0], "lines": count, "next": at}, "%s: %d lines, up to %s\n", args[0], count, display.Clean(at))
	})
	return c
}

// writeWhole writes a file atomically: it appears complete or not at all.
func writeWhole(path string, write func(io.Writer) (int, error)) (count int, err error) {
	partial, err := os.Create(path + ".partial")
	if err != nil {
		return 0, fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(partial.Name()) }() // fails if the rename succeeded
	count, err = write(partial)
	if err = errors.Join(err, partial.Close()); err != nil {
		return count, err
	}
	return count, os.Rename(partial.Name(), path)
}

func (a *app) eventsVerify() *cobra.Command {
	var keys, until string
	c := &cobra.Command{
		Use: "verify FILE", Short: "Prove that a file of events is complete",
		Long: `Check the signatures of a file that "sortie events export" has saved, and that nothing
was changed, removed, inserted or moved between its first and its last checkpoint.
A file that was cut behind a checkpoint proves what it has; --until names the position, or
the cursor, that the proof must reach. The keys are a JSON Web Key set: a file, or the address of /.well-known/jwks.json. With a
file the command needs no network.`,
		Example: "  sortie events verify events.ndjson --keys keys.json --until 120\n  sortie events verify events.ndjson --keys http://127.0.0.1:8080/.well-known/jwks.json",
	}
	c.Flags().StringVar(&keys, "keys", "", "file or address of the public keys (required)")
	c.Flags().StringVar(&until, "until", "", "position or cursor that the proof must reach")
	argument.Require(c, "keys")
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		end, err := reached(until)
		if err != nil {
			return err
		}
		document, err := readKeys(ctx, keys)
		if err != nil {
			return err
		}
		known, err := events.ParseKeys(document)
		if err != nil {
			return fmt.Errorf("cannot use the keys of %s: %w", keys, err)
		}
		file, err := os.Open(args[0])
		if err != nil {
			return fmt.Errorf("cannot read the events: %w", err)
		}
		defer func() { _ = file.Close() }() // it is only read
		proof, err := events.Verify(ctx, file, known)
		if err == nil {
			err = proof.Reach(end)
		}
		if err != nil {
			return fmt.Errorf("%s is not proved: %w", args[0], err)
		}
		text := fmt.Sprintf("%s: the events %d to %d of %s are complete and unchanged", args[0], proof.From+1, proof.To, proof.Origin)
		if proof.Outside > 0 {
			text += fmt.Sprintf("; %d more are signed, but are not between two checkpoints", proof.Outside)
		}
		return a.Result(proof, "%s\n", display.Clean(text))
	})
	return c
}

// reached parses --until: a position, or a cursor, which ends with a position. Empty means 0.
func reached(until string) (int64, error) {
	if until == "" {
		return 0, nil
	}
	end, err := strconv.ParseInt(until[strings.LastIndexByte(until, '-')+1:], 10, 64)
	if err != nil || end < 1 {
		return 0, cli.Wrong("--until: malformed value %q, want a position such as 120, or a cursor", until)
	}
	return end, nil
}

// keyLimit limits a key set, in bytes.
const keyLimit = 1 << 20

// readKeys reads a key set from a file or an address.
func readKeys(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		document, err := os.ReadFile(from)
		if err != nil {
			return nil, fmt.Errorf("cannot read the keys: %w", err)
		}
		return document, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, cli.Wrong("--keys: malformed address, want http://HOST:PORT/.well-known/jwks.json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot read the keys: %s answered %d, want 200", from, resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, keyLimit))
}
