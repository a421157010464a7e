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
)

const (
	// progressEvery is how often the log tells how far the export is.
	progressEvery = 10 * time.Second
	// outage is how many entities in a row may be unavailable, after all
	// attempts for each, before the source as a whole is taken to be.
	outage = 32
)

// counts are the entities of an export so far.
type counts struct {
	exported, failed, incomplete int
}

// export writes one document. It is used once, by one goroutine; the readers
// run beside it.
type export struct {
	config Config
	dir    string // for temporary files
	clock  source.Clock
	log    *slog.Logger
	tell   func(percent int, message string) // of each entity
	format formats.Format
	xml    *xmlstream.Writer
	tree   *tree
	counts counts

	unavailable int // in a row
	told        time.Time
}

// write makes the document in file: it reads ahead with a reader for each of
// ParallelBatchSize entities, and writes what they read in the order of the
// walk.
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
	x.told = x.clock.Now()
	asked := 0
	ask := func(done int) {
		for ; asked < x.tree.size && asked-done < len(readers); asked++ {
			at := asked % len(readers)
			if readers[at] == nil {
				readers[at] = newReader(from, x.config.Options, x.dir)
			}
			pi := x.tree.node(asked).pi
			running.Go(func() { readers[at].read(ctx, pi) })
		}
	}
	// The tree grows on the way: its size is to be read anew for each entity.
	for done := 0; done < x.tree.size; done++ { //nolint:intrange // see above
		ask(done)
		r := readers[done%len(readers)]
		<-r.done
		if r.fatal != nil {
			return r.fatal
		}
		x.queue(done, r.manifest.Children)
		ask(done)
		if err := x.take(ctx, done, r); err != nil {
			return err
		}
		r.reset()
		x.progress(ctx, done+1)
	}
	x.format.Close(x.xml)
	return unwritten(x.xml.Flush())
}

// queue appends the children that were not found before.
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

// take writes the record of one entity that was read, or counts it as failed.
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
	x.log.WarnContext(ctx, "entity cannot be read", "pi", pi.String(), "why", why.Error())
	if source.KindOf(why) != source.Unavailable {
		x.unavailable = 0
		return nil
	}
	if x.unavailable++; x.unavailable == outage {
		return fmt.Errorf("the source is unavailable: %d entities in a row could not be read, the last with: %w", outage, why)
	}
	return nil
}

// unwritten says that the document could not be written, without the name of
// a file that has none.
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
	// The last part is the upload's. What is known grows on the way.
	x.tell(done*95/x.tree.size, fmt.Sprintf("%d of %d entities known so far", done, x.tree.size))
	now := x.clock.Now()
	if now.Sub(x.told) < progressEvery {
		return
	}
	x.told = now
	x.log.InfoContext(ctx, "exporting", "done", done, "queued", x.tree.size-done)
}

// rootError is the failure to read the entity that was asked for. Its words
// are the contract's.
type rootError struct {
	pi  record.PI
	why error
}

func (r *rootError) Error() string {
	return fmt.Sprintf("Failed to fetch manifest for PI %s: %v", r.pi, r.why)
}

func (r *rootError) Unwrap() error { return r.why }
