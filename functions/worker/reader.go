package worker

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/record"
	"github.com/sortie-dev/sortie/functions/worker/source"
)

// Limits of components in bytes. Pinax and graph are kept in memory while their entity is
// written; the others are streamed.
const (
	maxPinax    = 4 << 20
	maxGraph    = 4 << 20
	maxStreamed = 256 << 20
	spoolMemory = 2 << 20 // shared by the entities in flight
	minSpool    = 16 << 10
)

// reader reads one entity at a time and reuses its spool for the next.
type reader struct {
	from  *source.Client
	graph formats.GraphMode
	spool *source.Spool
	done  chan struct{} // holds one token when read has returned

	manifest record.Manifest
	parts    []record.Part
	err      error // of the manifest
	fatal    error // ends the export: of the disk or the context
}

func newReader(from *source.Client, options Options, dir string) *reader {
	share := max(minSpool, spoolMemory/options.ParallelBatchSize)
	return &reader{
		from: from, graph: options.CheimarrosMode, spool: source.NewSpool(dir, share), done: make(chan struct{}, 1),
	}
}

// read reads the manifest and the components that the export needs.
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

// limit returns the largest number of bytes of a component that are read; 0 for a component
// that is not read.
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

// reset prepares the reader for the next entity.
func (r *reader) reset() {
	r.spool.Cut(0)
	clear(r.parts)
	r.parts = r.parts[:0]
	r.manifest, r.err, r.fatal = record.Manifest{}, nil, nil
}

// section is the part of a spool from an offset.
type section struct {
	of    *source.Spool
	begin int64
}

func (s section) ReadAt(p []byte, off int64) (int, error) { return s.of.ReadAt(p, s.begin+off) }
