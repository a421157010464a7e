package deployed

import (
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/lambdakit/gateway"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/setting"
	"github.com/sortie-dev/sortie/shared/stream"
)

// The bounds of a stream of events.
const (
	// streamLife leaves a minute of the 15 that a function and API Gateway give a
	// streamed answer.
	streamLife = 14 * time.Minute
	// streamBytes is the part of a streamed answer that API Gateway does not slow down
	// to 2 MB a second, less what frames the events.
	streamBytes = 9 << 20
	// bufferedBytes is that of a buffered answer, in which JSON may double the text.
	bufferedBytes = gateway.AnswerLimit / 4
)

// Pages returns the streams for pages, which no reader follows.
func Pages(p *process.Process, store *dynamo.Store) *stream.Streams {
	return stream.New(Feed(p, store), p.Clock(), p.Log, p.Rand, stream.Config{})
}

// Streams returns the streams for readers. A tenant can have SORTIE_READERS of them open,
// all tenants together SORTIE_READERS_TOTAL, without which there is no limit.
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

// integer reads the value of a variable, at least 1.
func integer(p *process.Process, name, value string) int {
	n, err := setting.ParseInteger(value, 1, math.MaxInt32)
	if err != nil {
		p.Check(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
