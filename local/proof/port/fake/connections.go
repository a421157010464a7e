package fake

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/port"
)

// Connections stores connections in memory. It is safe for concurrent use.
type Connections struct {
	calls

	mu   sync.Mutex
	byID map[string]port.Connection
}

var _ port.Connections = (*Connections)(nil)

// NewConnections returns a store without connections.
func NewConnections(plan Plan) *Connections {
	return &Connections{calls: calls{plan: plan}, byID: map[string]port.Connection{}}
}

// do makes a call under the lock.
func (c *Connections) do(ctx context.Context, method, subject string, write bool, do func() error) error {
	return c.call(ctx, method, subject, write, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return do()
	})
}

// AddConnection implements port.Connections.
func (c *Connections) AddConnection(ctx context.Context, is port.Connection) error {
	return c.do(ctx, "AddConnection", is.ID, true, func() error {
		if _, known := c.byID[is.ID]; known {
			return port.ErrConflict
		}
		is.Version = 1
		c.byID[is.ID] = is
		return nil
	})
}

// SaveConnection implements port.Connections.
func (c *Connections) SaveConnection(ctx context.Context, is port.Connection) error {
	return c.do(ctx, "SaveConnection", is.ID, true, func() error {
		if was, known := c.byID[is.ID]; !known || was.Version != is.Version {
			return port.ErrConflict
		}
		is.Version++
		c.byID[is.ID] = is
		return nil
	})
}

// RemoveConnection implements port.Connections.
func (c *Connections) RemoveConnection(ctx context.Context, id string) (was port.Connection, err error) {
	err = c.do(ctx, "RemoveConnection", id, true, func() error {
		var known bool
		if was, known = c.byID[id]; !known {
			return port.ErrNotFound
		}
		delete(c.byID, id)
		return nil
	})
	return was, err
}

// LoadConnections implements port.Connections.
func (c *Connections) LoadConnections(ctx context.Context, tenant, after string, limit int) (found []port.Connection, err error) {
	err = c.do(ctx, "LoadConnections", tenant, false, func() error {
		for _, is := range c.byID {
			if is.Tenant == tenant && is.ID > after {
				found = append(found, is)
			}
		}
		slices.SortFunc(found, func(a, b port.Connection) int { return cmp.Compare(a.ID, b.ID) })
		found = found[:min(limit, len(found))]
		return nil
	})
	return found, err
}

// Connected implements port.Connections.
func (c *Connections) Connected(ctx context.Context, tenant string) (ok bool, err error) {
	found, err := c.LoadConnections(ctx, tenant, "", 1)
	return len(found) > 0, err
}

// ConnectedTenants implements port.Connections.
func (c *Connections) ConnectedTenants(ctx context.Context, after string, limit int) (tenants []string, err error) {
	err = c.do(ctx, "ConnectedTenants", "", false, func() error {
		for _, is := range c.byID {
			if is.Tenant > after {
				tenants = append(tenants, is.Tenant)
			}
		}
		slices.Sort(tenants)
		tenants = slices.Compact(tenants)
		tenants = tenants[:min(limit, len(tenants))]
		return nil
	})
	return tenants, err
}
