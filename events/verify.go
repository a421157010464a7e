package events

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line of a file of events: an event with its DSSE envelope in
// base64.
const maxLine = 1 << 20

// Proof is the result of the verification of a file of events.
type Proof struct {
	Origin string `json:"origin"`
	// Events is the number of events in the file; each has a valid signature.
	Events int64 `json:"events"`
	// From and To are the sizes of the stream at the first and the last checkpoint. The file
	// has exactly the events From+1 to To of the stream, in order.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Outside is the number of events before the first checkpoint and after the last one. Their
	// order and completeness are not proved.
	Outside int64 `json:"outside"`
}

// Reach returns an error unless the proof covers the stream up to a position. The caller must
// know the position from another source: a file that was cut after one of its checkpoints is
// still valid up to that checkpoint.
func (p Proof) Reach(position int64) error {
	if p.To < position {
		return fmt.Errorf("the last checkpoint is at position %d, want %d or more: the events behind it are missing, or not proved yet", p.To, position)
	}
	return nil
}

// CheckpointLine is a checkpoint in a file of events.
type CheckpointLine struct {
	Checkpoint string `json:"checkpoint"`
}

// Verify checks a file of events: one DSSE envelope or Message per line in the order of one
// stream, with lines with checkpoints between them. It fails at the first line whose signature
// is invalid, and at a checkpoint whose root differs from that of the events before it: an
// event was changed, removed, inserted or moved. A file without two checkpoints proves nothing
// and is an error, unless it starts with the first events of the stream.
func Verify(ctx context.Context, file io.Reader, keys Keys) (Proof, error) {
	v := verification{keys: keys}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := v.line(ctx, line); err != nil {
			return Proof{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Proof{}, fmt.Errorf("cannot read the file: %w", err)
	}
	return v.end()
}

// verification is the state of a call of Verify.
type verification struct {
	keys  Keys
	proof Proof
	// tree is the tree of the last checkpoint, or of an empty stream, with the events since.
	tree   Tree
	tenant string
	seen   bool // a checkpoint
	// outside is the number of events since the last checkpoint.
	outside int64
}

func (v *verification) line(ctx context.Context, line []byte) error {
	var c struct {
		CheckpointLine
		SpecVersion string `json:"specversion"` // of a message
	}
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("malformed line: %w", err)
	}
	if c.Checkpoint != "" {
		return v.checkpoint(c.Checkpoint)
	}
	open := v.keys.Open
	if c.SpecVersion != "" {
		open = v.keys.OpenMessage
	}
	e, payload, err := open(ctx, line)
	if err != nil {
		return err
	}
	if v.tenant != "" && e.TenantID != v.tenant {
		return fmt.Errorf("the event is of tenant %q, want %q", e.TenantID, v.tenant)
	}
	v.tenant = e.TenantID
	v.proof.Events++
	v.outside++
	if v.tree, err = v.tree.Add(payload); err != nil {
		return err
	}
	return nil
}

func (v *verification) checkpoint(signed string) error {
	c, err := v.keys.Checkpoint(signed)
	if err != nil {
		return err
	}
	if v.seen && c.Origin != v.proof.Origin {
		return fmt.Errorf("the checkpoint is of stream %q, want %q", c.Origin, v.proof.Origin)
	}
	complete := v.tree.Size == c.Tree.Size && v.tree.Root() == c.Tree.Root()
	switch {
	case v.seen && !complete:
		return fmt.Errorf("the %d events since the last checkpoint are not the events %d to %d of the stream",
			v.outside, v.proof.To+1, c.Tree.Size)
	case complete: // including the events since the start of the stream
		v.outside = 0
	case v.proof.Events > 0:
		v.proof.Outside += v.outside
		v.proof.From, v.outside = c.Tree.Size, 0
	default:
		v.proof.From = c.Tree.Size
	}
	v.seen, v.proof.Origin, v.proof.To, v.tree = true, c.Origin, c.Tree.Size, c.Tree
	return nil
}

func (v *verification) end() (Proof, error) {
	if !v.seen {
		return Proof{}, errors.New("the file has no checkpoint, so it proves nothing about its order and completeness")
	}
	v.proof.Outside += v.outside
	if v.proof.To == v.proof.From && v.proof.Events > 0 {
		return Proof{}, fmt.Errorf("the file has no events between two checkpoints; got one checkpoint, at %d", v.proof.To)
	}
	return v.proof, nil
}
