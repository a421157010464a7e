package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// eventSource follows events with npm's EventSource, by name and as messages, while the server
// is stopped and killed. Each reader must receive each event once, in order.
func eventSource(ctx context.Context, k *kit) error {
	cuts := []os.Signal{syscall.SIGINT, syscall.SIGKILL}
	if k.quick {
		cuts = cuts[1:]
	}
	s, err := k.start(ctx, "eventsource", "")
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	ticket, err := s.ticket(limited)
	if err != nil {
		return err
	}
	address := s.URL + "/v1/events/stream?after=earliest&ticket=" + ticket
	named := []string{address, contract.StreamGap}
	for _, each := range eventtype.All() {
		named = append(named, string(each.Type))
	}
	var readers []*reader
	for _, args := range [][]string{{address + "&as=message", "message"}, named} {
		output, err := k.spawn(limited, append([]string{k.tools.Node, k.config("testdata/clients/eventsource.cjs")}, args...))
		if err != nil {
			return err
		}
		readers = append(readers, &reader{Reader: output})
	}
	return k.cut(limited, s, readers, cuts)
}

// reader has the ids of the events that a client has received.
type reader struct {
	*bufio.Reader

	got []string
}

// until reads events up to the first one of a type and a task.
func (r *reader) until(kind eventtype.Type, task string) error {
	for {
		line, err := r.ReadString('\n')
		fields := strings.Fields(line)
		if err != nil {
			return fmt.Errorf("got %d events from the client, want %s of %s: %w", len(r.got), kind, task, err)
		}
		if len(fields) != 3 {
			return fmt.Errorf("got %q from the client, want an event", line)
		}
		r.got = append(r.got, fields[2])
		if fields[0] == string(kind) && fields[1] == task {
			return nil
		}
	}
}

// cut interrupts the server during exports, and compares the events that the readers received
// with the stored events.
func (k *kit) cut(ctx context.Context, s *server, readers []*reader, cuts []os.Signal) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	for i := range len(cuts) + 1 {
		accepted, err := c.Export(ctx, "mods", contract.ExportRequest{PI: samples.SampleRoot}, fmt.Sprintf("cut-%d", i))
		if err != nil {
			return fmt.Errorf("cannot export: %w", err)
		}
		for _, kind := range []eventtype.Type{eventtype.Accepted, eventtype.Completed} {
			if i < len(cuts) && kind == eventtype.Completed {
				if err := k.restart(ctx, s, cuts[i]); err != nil {
					return err
				}
			}
			for _, r := range readers {
				if err := r.until(kind, accepted.TaskID); err != nil {
					return err
				}
			}
		}
	}
	page, err := c.EventPage(ctx, nil, stream.Earliest, 1000)
	if err != nil {
		return fmt.Errorf("cannot read the events: %w", err)
	}
	var want []string
	for _, document := range page.Events {
		e, err := events.Parse(document)
		if err != nil {
			return fmt.Errorf("cannot read an event: %w", err)
		}
		want = append(want, e.EventID)
	}
	for _, r := range readers {
		if len(r.got) > len(want) || !slices.Equal(r.got, want[:len(r.got)]) {
			return fmt.Errorf("got the events %v, want %v", r.got, want)
		}
	}
	return nil
}

// restart ends a server with a signal and restarts it at the same address with the same data.
func (k *kit) restart(ctx context.Context, s *server, signal os.Signal) error {
	if err := s.end(signal); err != nil {
		return err
	}
	return k.serve(ctx, s, strings.TrimPrefix(s.URL, "http://"))
}

// ticket returns a ticket for the streams of all events.
func (s *server) ticket(ctx context.Context) (string, error) {
	var created contract.Ticket
	err := s.post(ctx, "/v1/events/tickets", []byte(`{}`), http.StatusCreated, &created)
	return created.Ticket, err
}
