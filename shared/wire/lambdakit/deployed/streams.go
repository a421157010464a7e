package deployed

import (
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/gateway"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// The limits of a stream of events.
const (
	// streamLife is one minute less than the 15 minutes that a function and API Gateway allow
	// for a streamed response.
	streamLife = 14 * time.Minute
	// streamBytes is the part of a streamed response that API Gateway does not throttle to 2 MB
	// a second, less the framing of events.
	streamBytes = 9 << 20
	// bufferedBytes is the limit for a buffered response, in which JSON may double the text.
	bufferedBytes = gateway.AnswerLimit / 4
)

// Pages returns the streams for pages. No reader follows them.
func Pages(p *process.Process, store *dynamo.Store) *stream.Streams {
	return stream.New(Feed(p, store), p.Clock(), p.Log, p.Rand, stream.Config{})
}

// Streams returns the streams for readers. SORTIE_READERS is the limit of open streams of a
// tenant. SORTIE_READERS_TOTAL is the limit of all tenants together; without it there is no
// such limit.
func Streams(p *process.Process, store *dynamo.Store) *stream.Streams {
	config := stream.Config{Life: streamLife, Bytes: streamBytes, Seats: store, Record: lambdakit.Observe}
	if p.Buffered() {
		config.Bytes = bufferedBytes
	}
	config.Readers = integer(p, "SORTIE_READERS", p.Need("SORTIE_READERS"))
	if total := p.Option("SORTIE_READERS_TOTAL", ""); total != "" {
		config.Total = integer(p, "SORTIE_READERS_TOTAL", total)
	}
	return stream.New(Feed(p, store), p.Clock(), p.Log, p.Rand, config)
}

// integer parses the value of the variable. The value must be at least 1.
func integer(p *process.Process, name, value string) int {
	n, err := setting.ParseInteger(value, 1, math.MaxInt32)
	if err != nil {
		p.Check(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
