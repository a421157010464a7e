package children

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// read is a function that reads an accepted output of a run.
type read = func(context.Context, run.Upload) ([]byte, error)

// Begin reads and stores the items of a run, and starts its first children. It may be repeated. A
// run without a valid list fails.
func (s *Children) Begin(ctx context.Context, r run.Run, read read) error {
	var fact run.Fact
	list, err := s.itemsOf(ctx, r, read)
	invalid, is := errors.AsType[*fault.Fault](err)
	switch {
	case is && invalid.Code == fault.ItemsInvalid:
		fact = run.FanFailed{Attempt: r.Attempt.Number, Fault: invalid}
	case err != nil:
		return err
	default:
		digest, err := s.lists.Save(ctx, r.Tenant, list)
		if err != nil {
			return err
		}
		fact = run.FanBegun{Attempt: r.Attempt.Number, Total: len(list), List: digest}
	}
	after, err := s.runs.Apply(ctx, r, fact)
	if err != nil {
		return fmt.Errorf("cannot begin the children of run %s: %w", r.ID, err)
	}
	if after.Fan == nil || len(after.Fan.Active) == 0 {
		return nil
	}
	if err = s.Reconcile(ctx, r.Ref()); fault.Is(err, fault.Unavailable) { // such as a full queue
		s.log.WarnContext(ctx, "cannot create all children; the next check does", "run_id", r.ID, "error", err.Error())
		return nil
	}
	return err
}

// itemsOf returns the items of a run. Fault: ItemsInvalid, which no retry changes.
func (s *Children) itemsOf(ctx context.Context, r run.Run, read read) (list []fan.Item, err error) {
	spec := r.Work.Fan
	switch {
	case spec.List != "":
		list, err = s.lists.Load(ctx, r.Tenant, spec.List)
		if errors.Is(err, port.ErrNotFound) {
			return nil, fault.New(fault.ItemsInvalid, "the items are not stored any more")
		}
		return list, err
	case spec.From != nil:
		texts, err := s.output(ctx, r, *spec.From, read)
		if err != nil {
			return nil, err
		}
		list = fan.ListOf(texts)
	case spec.Matrix != nil:
		list = fan.Product(spec.Matrix)
	default:
		list = fan.ListOf(spec.Items)
	}
	if err := fan.Check(list); err != nil {
		return nil, fault.New(fault.ItemsInvalid, "%s", err)
	}
	return list, nil
}

// output returns the list in the output of another run. Fault: ItemsInvalid.
func (s *Children) output(ctx context.Context, r run.Run, from fan.Source, read read) ([]string, error) {
	of, output := "run "+from.RunID, (*run.Upload)(nil)
	if from.JobID != "" {
		of = "job " + from.JobID
		if r.Graph != nil {
			if i := slices.IndexFunc(r.Graph.Upstream, func(p run.Parent) bool { return p.JobID == from.JobID }); i >= 0 {
				output = r.Graph.Upstream[i].Output
			}
		}
	} else {
		source, err := s.store.Find(ctx, r.Tenant, from.RunID)
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return nil, fmt.Errorf("cannot read run %s: %w", from.RunID, err)
		}
		if err == nil && source.Output != nil {
			output = &source.Output.Upload
		}
	}
	if output == nil {
		return nil, fault.New(fault.ItemsInvalid, "%s has no output with the items", of)
	}
	if output.Size > fan.MaxOutput {
		return nil, fault.New(fault.ItemsInvalid, "the output of %s has %d bytes, want at most %d", of, output.Size, fan.MaxOutput)
	}
	content, err := read(ctx, *output)
	if errors.Is(err, port.ErrNotFound) {
		return nil, fault.New(fault.ItemsInvalid, "the output of %s has been deleted", of)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the output of %s: %w", of, err)
	}
	texts, err := fan.Read(content, from.Result)
	if err != nil {
		return nil, fault.New(fault.ItemsInvalid, "%s: %s", of, err)
	}
	return texts, nil
}

// result is a line of the results of a run with children.
type result struct {
	Index int             `json:"index"`
	Item  json.RawMessage `json:"item"`
	RunID string          `json:"runId,omitempty"`
	State fan.Status      `json:"state"`
	// Result is the output of the child, if that is small JSON.
	Result json.RawMessage `json:"result,omitempty"`
	Output *resultOutput   `json:"output,omitempty"`
	Fault  *resultFault    `json:"fault,omitempty"`
}

type resultOutput struct {
	FileName string `json:"fileName"`
	Size     int64  `json:"size"`
	Digest   string `json:"digest,omitempty"`
}

type resultFault struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// Results returns the results of the children of a run whose children have ended: a line of JSON
// for each, in order. The lines after maxResults bytes have no result.
func (s *Children) Results(ctx context.Context, r run.Run) ([]byte, error) {
	if r.Fan == nil {
		return nil, nil
	}
	list, err := s.lists.Load(ctx, r.Tenant, r.Work.Fan.List)
	if err != nil {
		return nil, err
	}
	var found bytes.Buffer
	statuses := r.Fan.Statuses()
	for first := 0; first < r.Fan.Total; first += resultsPage {
		lines := make([][]byte, min(resultsPage, r.Fan.Total-first))
		numbers := make([]int, len(lines))
		for i := range numbers {
			numbers[i] = first + i
		}
		short := found.Len() > maxResults
		err = s.each(ctx, numbers, func(ctx context.Context, n int) (err error) {
			lines[n-first], err = s.line(ctx, r, list[n], n, statuses[n], short)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			_, _ = found.Write(line) // it returns no error
		}
	}
	return found.Bytes(), nil
}

// A function has 128 MB of memory. The lines of a page have results unless those before have more
// than maxResults bytes.
const (
	resultsPage = 250
	maxResults  = 8 << 20
)

// line returns the result of a child as JSON; a short one has no output.
func (s *Children) line(ctx context.Context, r run.Run, item fan.Item, n int, status fan.Status, short bool) ([]byte, error) {
	text, _ := json.Marshal(item.Text) //nolint:errchkjson // a text
	if item.Matrix != nil {
		text = []byte(item.Text)
	}
	found := result{Index: item.Index, Item: text, State: status}
	if n < r.Fan.Started {
		found.RunID = fan.RunID(r.ID, n)
		child, err := s.store.Load(ctx, run.Ref{Tenant: r.Tenant, ID: found.RunID})
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return nil, fmt.Errorf("cannot read child %d of run %s: %w", n, r.ID, err)
		}
		if o := child.Output; o != nil {
			found.Output = &resultOutput{FileName: o.FileName, Size: o.Size, Digest: o.Digest}
			if o.Text != nil && !short && len(*o.Text) <= fan.MaxResult && json.Valid([]byte(*o.Text)) {
				found.Result = json.RawMessage(*o.Text)
			}
		}
		if f := child.Fault; f != nil {
			found.Fault = &resultFault{f.Code, f.Message}
		}
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // it would make a result up to six times as long
	if err := encoder.Encode(found); err != nil {
		return nil, fmt.Errorf("cannot encode the result of child %d: %w", n, err)
	}
	return line.Bytes(), nil
}
