package stream

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sortie-dev/sortie/shared/domain/series"
	"github.com/sortie-dev/sortie/shared/port"
)

// counters count the open streams of a process.
type counters struct{ sse, webSockets atomic.Int64 }

func (c *counters) add(t series.Transport, n int64) {
	if t == series.WebSocket {
		c.webSockets.Add(n)
	} else {
		c.sse.Add(n)
	}
}

// Open is a series.Reader. It returns the number of readers that this process serves, for each
// transport.
func (s *Streams) Open(context.Context) ([]series.Sample, error) {
	return []series.Sample{readers(series.SSE, s.open.sse.Load()), readers(series.WebSocket, s.open.webSockets.Load())}, nil
}

// OpenConnections returns the series.Reader for the connections that a gateway keeps open.
func OpenConnections(connections port.Connections) series.Reader {
	return func(ctx context.Context) ([]series.Sample, error) {
		const page = 100
		n := 0
		for after := ""; ; {
			tenants, err := connections.ConnectedTenants(ctx, after, page)
			if err != nil {
				return nil, fmt.Errorf("cannot read the tenants with connections: %w", err)
			}
			for _, tenant := range tenants {
				found, err := count(ctx, connections, tenant, page)
				if err != nil {
					return nil, err
				}
				n += found
				after = tenant
			}
			if len(tenants) < page {
				return []series.Sample{readers(series.WebSocket, int64(n))}, nil
			}
		}
	}
}

// count returns the number of a tenant's connections, without refused ones.
func count(ctx context.Context, connections port.Connections, tenant string, page int) (n int, err error) {
	for after := ""; ; {
		found, err := connections.LoadConnections(ctx, tenant, after, page)
		if err != nil {
			return n, fmt.Errorf("cannot read the connections: %w", err)
		}
		for _, c := range found {
			if !c.Refused {
				n++
			}
			after = c.ID
		}
		if len(found) < page {
			return n, nil
		}
	}
}

func readers(t series.Transport, n int64) series.Sample {
	return series.Sample{Name: series.Readers, Value: float64(n), Labels: []string{string(t)}}
}
