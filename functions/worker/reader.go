package worker

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/record"
	"github.com/sortie-dev/sortie/functions/worker/source"
)

// How large components may be. Pinax and graph are read whole when their
// entity is written; the others are streamed.
const (
	maxPinax     = 4 << 20
	maxGraph     = 4 << 20
	maxStreamed  = 256 << 20
	spoolMemory  = 2 << 20 // shared by the entities in flight
	leastInSpool = 16 << 10
)

// reader reads one entity at a time, one ahead of others. Its spool is used
// again for the next.
type reader struct {
	from  *source.Client
	graph formats.GraphMode
	spool *source.Spool
	done  chan struct{} // one token when read has ended

	manifest record.Manifest
	parts    []record.Part
	err      error // why there is no manifest
	fatal    error // why the export cannot go on: the disk, the context
}

func newReader(from *source.Client, options Options, dir string) *reader {
	share := max(leastInSpool, spoolMemory/options.ParallelBatchSize)
	return &reader{
		from: from, graph: options.CheimarrosMode, spool: source.NewSpool(dir, share), done: make(chan struct{}, 1),
	}
}

// read gets the manifest and the components that the export needs, each once.
func (r *reader) read(ctx context.Context, pi record.PI) {
	defer func() { r.done <- struct{}{} }()
	r.manifest, r.err = r.from.Manifest(ctx, pi)
	if r.err != nil {
		r.fatal = ctx.Err()
		return
	}
	for _, c := range r.manifest.Components {
		limit := r.limit(c.Name)
		if limit == 0 {
			continue
		}
		begin := r.spool.Size()
		err := r.from.Component(ctx, c.CID, limit, r.spool)
		if err != nil && (ctx.Err() != nil || source.KindOf(err) == "") {
			r.fatal = errors.Join(ctx.Err(), err)
			return
		}
		r.parts = append(r.parts, record.Part{
			Component: c, Err: err,
			Body: section{r.spool, begin}, Size: r.spool.Size() - begin,
		})
	}
}

// limit is how many bytes of a component are read; 0 where none are.
func (r *reader) limit(name string) int64 {
	switch record.KindOf(name) {
	case record.KindPinax:
		return maxPinax
	case record.KindGraph:
		if r.graph != formats.GraphSkip {
			return maxGraph
		}
	case record.KindDescription, record.KindReference:
		return maxStreamed
	case record.Opaque:
	}
	return 0
}

// reset makes the reader ready for the next entity.
func (r *reader) reset() {
	r.spool.Cut(0)
	clear(r.parts)
	r.parts = r.parts[:0]
	r.manifest, r.err, r.fatal = record.Manifest{}, nil, nil
}

// section is a spool from an offset on.
type section struct {
	of    *source.Spool
	begin int64
}

func (s section) ReadAt(p []byte, off int64) (int, error) { return s.of.ReadAt(p, s.begin+off) }
