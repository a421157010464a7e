package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// The limits of one request with events.
const (
	mostSent      = 100
	mostSentBytes = 1 << 20
)

// sentEvent is the event of the flags of "jobs send".
type sentEvent struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}

func (a *app) jobsSend() *cobra.Command {
	event := sentEvent{SpecVersion: "1.0"}
	var data string
	c := &cobra.Command{
		Use: "send JOB [FILE]", Short: "Send CloudEvents to a job with a sensor",
		Long: `Start the run of each CloudEvent that the sensor of a job takes. The events are those
of a file in JSON, one after another or in a list, at most 100; - is standard input.
Without a file, flags describe one event.

An event that was sent before has its run: the command is safe to repeat with the same
--source and --id.`,
		Example: "  sortie jobs send order --type com.example.order.paid --source /shop --id 4711\n" +
			"  sortie jobs send order events.json",
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 2 {
			return nil
		}
		return argument.Exactly("JOB")(c, args)
	}
	flags := c.Flags()
	flags.StringVar(&event.Type, "type", "", "type of the event")
	flags.StringVar(&event.Source, "source", "sortie", "source of the event, a URI reference")
	flags.StringVar(&event.ID, "id", "", "id of the event, unique in its source; by default a new one")
	flags.StringVar(&event.Subject, "subject", "", "subject of the event")
	flags.StringVar(&data, "data", "", "data of the event, JSON")
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.jobIDs()(cmd, args, typed)
	}
	c.RunE = a.WithClient(func(ctx context.Context, server *client.Client, args []string) error {
		events, err := a.eventsToSend(args[1:], event, data)
		if err != nil {
			return err
		}
		receipts, err := server.SendEvents(ctx, args[0], events)
		if err != nil {
			return err
		}
		return a.showReceipts(receipts)
	})
	return c
}

// eventsToSend returns the events of a file, or without one that of the flags.
func (a *app) eventsToSend(files []string, event sentEvent, data string) ([]json.RawMessage, error) {
	if len(files) > 0 {
		if event.Type != "" || event.ID != "" || event.Subject != "" || data != "" {
			return nil, cli.Wrong("%s: got a file and flags of an event, want one of them", files[0])
		}
		return a.readEvents(files[0])
	}
	if event.Type == "" {
		return nil, cli.Wrong("missing events: want a file, or --type and other flags")
	}
	if data != "" && !json.Valid([]byte(data)) {
		return nil, cli.Wrong("--data: %q is no JSON; a text has quotes, such as '\"text\"'", data)
	}
	event.ID, event.Data = cmp.Or(event.ID, uuid.NewString()), json.RawMessage(data)
	text, err := json.Marshal(event)
	return []json.RawMessage{text}, err
}

// readEvents returns the JSON values of a file, those of lists one by one; "-" is standard input.
func (a *app) readEvents(name string) (events []json.RawMessage, err error) {
	var content []byte
	if name == "-" {
		content, err = io.ReadAll(io.LimitReader(a.Stdin, mostSentBytes+1))
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, cli.Missing(name, err)
	}
	if len(content) > mostSentBytes {
		return nil, cli.Wrong("%s: more than %d bytes, which one request may have", name, mostSentBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, cli.Wrong("%s: malformed JSON at byte %d: %v", name, decoder.InputOffset(), err)
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			list = []json.RawMessage{value}
		}
		events = append(events, list...)
	}
	if len(events) == 0 || len(events) > mostSent {
		return nil, cli.Wrong("%s: got %d events, want 1 to %d", name, len(events), mostSent)
	}
	return events, nil
}

func (a *app) showReceipts(receipts contract.EventReceipts) error {
	t := display.NewTable("EVENT", "SOURCE", "RESULT", "RUN")
	for _, r := range receipts.Events {
		t.Row(display.Clean(r.ID), display.Clean(r.Source), r.Result, r.RunID)
	}
	return a.Table(receipts, t)
}
