package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
	"github.com/sortie-dev/sortie/functions/worker/source"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const (
	// logInterval is the time between two log lines about the progress.
	logInterval = 10 * time.Second
	// outage is the number of consecutive unavailable entities, after all attempts
	// for each, that ends the export.
	outage = 32
)

// counts are the numbers of processed entities of an export.
type counts struct {
	exported, failed, incomplete int
}

// export writes one document. It is used once, by one goroutine, while the readers
// run concurrently.
type export struct {
	config Config
	dir    string // for temporary files
	clock  clock.Clock
	log    *slog.Logger
	report func(percent int, message string) // called after each entity
	format formats.Format
	xml    *xmlstream.Writer
	tree   *tree
	counts counts

	unavailable int // consecutive entities
	logged      time.Time
}

// write writes the document to file. ParallelBatchSize readers read ahead. Their records are
// written in the order of the walk.
func (x *export) write(ctx context.Context, from *source.Client, file io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	readers := make([]*reader, x.config.Options.ParallelBatchSize)
	defer func() {
		cancel()
		running.Wait()
		for _, r := range readers {
			if r != nil {
				r.spool.Close()
			}
		}
	}()
	x.xml = xmlstream.New(file)
	x.tree = newTree(x.config.PI)
	x.logged = x.clock.Now()
	started := 0
	startReaders := func(done int) {
		for ; started < x.tree.size && started-done < len(readers); started++ {
			at := started % len(readers)
			if readers[at] == nil {
				readers[at] = newReader(from, x.config.Options, x.dir)
			}
			pi := x.tree.node(started).pi
			running.Go(func() { readers[at].read(ctx, pi) })
		}
	}
	// The tree grows during the loop, so its size is read for each entity.
	for done := 0; done < x.tree.size; done++ { //nolint:intrange // see above
		startReaders(done)
		r := readers[done%len(readers)]
		<-r.done
		if r.fatal != nil {
			return r.fatal
		}
		x.queue(done, r.manifest.Children)
		startReaders(done)
		if err := x.take(ctx, done, r); err != nil {
			return err
		}
		r.reset()
		x.progress(ctx, done+1)
	}
	x.format.Close(x.xml)
	return unwritten(x.xml.Flush())
}

// queue appends the children that are not in the tree yet.
func (x *export) queue(parent int, children []record.PI) {
	depth := int(x.tree.node(parent).depth)
	if !x.config.Options.Recursive || depth >= x.config.Options.MaxDepth {
		return
	}
	for _, child := range children {
		if x.tree.size == math.MaxInt32-1 {
			return
		}
		x.tree.add(child, int32(parent), uint16(depth+1)) //nolint:gosec // the tree has less than math.MaxInt32 nodes
	}
}

// take writes the record of one entity, or counts it as failed.
func (x *export) take(ctx context.Context, i int, r *reader) error {
	if r.err != nil {
		return x.fail(ctx, i, r.err)
	}
	x.unavailable = 0
	e := record.Assemble(r.manifest, x.tree.position(i), r.parts)
	if i == 0 {
		x.format.Open(x.xml, e)
	}
	if err := x.format.Record(x.xml, e); err != nil {
		return fmt.Errorf("cannot write the record of %s: %w", e.PI, err)
	}
	x.counts.exported++
	if !e.Complete() {
		x.counts.incomplete++
		x.log.WarnContext(ctx, "entity is incomplete", "pi", e.PI.String(), "faults", e.Faults)
	}
	return unwritten(x.xml.Err())
}

func (x *export) fail(ctx context.Context, i int, why error) error {
	pi := x.tree.node(i).pi
	if i == 0 {
		return &rootError{pi: pi, why: why}
	}
	x.counts.failed++
	x.log.WarnContext(ctx, "cannot read the entity", "pi", pi.String(), "why", why.Error())
	if source.KindOf(why) != source.Unavailable {
		x.unavailable = 0
		return nil
	}
	if x.unavailable++; x.unavailable == outage {
		return fmt.Errorf("the source is unavailable: cannot read %d consecutive entities, the last with: %w", outage, why)
	}
	return nil
}

// unwritten describes a failure to write the document, without the name of the
// temporary file.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	if wrapped, ok := errors.AsType[*os.PathError](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("cannot write the document: %w", err)
}

func (x *export) progress(ctx context.Context, done int) {
	// The last 5 % are for the upload.
	x.report(done*95/x.tree.size, fmt.Sprintf("%d of %d entities found so far", done, x.tree.size))
	now := x.clock.Now()
	if now.Sub(x.logged) < logInterval {
		return
	}
	x.logged = now
	x.log.InfoContext(ctx, "exporting", "done", done, "queued", x.tree.size-done)
}

// rootError is the failure to read the requested entity. Its text is defined by the contract.
type rootError struct {
	pi  record.PI
	why error
}

func (r *rootError) Error() string {
	return fmt.Sprintf("Failed to fetch manifest for PI %s: %v", r.pi, r.why)
}

func (r *rootError) Unwrap() error { return r.why }
