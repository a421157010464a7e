package dynamo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	stdbytes "bytes"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/format"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/port"
)

var _ port.Connections = (*Store)(nil)

// A connection has two items. One is the connection, under its tenant, so that the connections
// of a tenant can be read consistently. The other is the tenant, under the id of the
// connection, because a disconnect names only the id.
const (
	connectionPrefix = schema.ConnectionPartitions + "of#" // followed by the tenant
	gatewayPrefix    = schema.ConnectionPartitions + "id#" // followed by the id of a connection
	connectionList   = "#connections"                      // the connections in the list index
	sortConnection   = "connection#"                       // followed by the id of a connection
	attrTenant       = "tenant"

	// connectionGrace is how long a connection that was not removed is kept after its end.
	connectionGrace = time.Hour
)

func connectionKey(tenant, id string) item {
	return keyOf(connectionPrefix+tenant, sortConnection+id)
}

func tenantKey(id string) item { return keyOf(gatewayPrefix+id, sortConnection) }

// connectionPart returns the part that stores a connection if the stored one has c.Version.
func (s *Store) connectionPart(c port.Connection) (*part, error) {
	put := connectionKey(c.Tenant, c.ID)
	put[attrList], put[attrBorn] = text(connectionList), bytes([]byte(c.Tenant+"\x00"+c.ID))
	put[schema.TTL] = number(wholeSecond(c.EndsAt.Add(connectionGrace)))
	p, err := s.versioned(put, c.Version, map[string]any{attrDoc: c})
	if err != nil {
		return nil, fmt.Errorf("cannot encode a connection: %w", err)
	}
	return p, nil
}

// AddConnection implements port.Connections.
func (s *Store) AddConnection(ctx context.Context, c port.Connection) error {
	c.Version = 0
	is, err := s.connectionPart(c)
	if err != nil {
		return err
	}
	nonce := binary.BigEndian.AppendUint64(nil, s.config.Random())
	by := &part{put: tenantKey(c.ID), refused: func(_ context.Context, is item) error {
		if stdbytes.Equal(bytesOf(is[attrNonce]), nonce) {
			return errApplied
		}
		return port.ErrConflict
	}}
	by.put[attrTenant], by.put[attrNonce], by.put[schema.TTL] = text(c.Tenant), bytes(nonce), is.put[schema.TTL]
	by.absent(schema.Partition.Name)
	return wrap(s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{by, is}) }), "store connection", c.ID)
}

// SaveConnection implements port.Connections.
func (s *Store) SaveConnection(ctx context.Context, c port.Connection) error {
	if c.Version < 1 {
		return port.ErrConflict
	}
	is, err := s.connectionPart(c)
	if err != nil {
		return err
	}
	return wrap(s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{is}) }), "store connection", c.ID)
}

// RemoveConnection implements port.Connections.
func (s *Store) RemoveConnection(ctx context.Context, id string) (port.Connection, error) {
	var was port.Connection
	err := s.retryOutdated(ctx, func() error {
		by, err := s.get(ctx, tenantKey(id), true)
		if err != nil {
			return err
		}
		tenant := textOf(by[attrTenant])
		is, err := s.get(ctx, connectionKey(tenant, id), true)
		if err != nil {
			return err
		}
		if by == nil || is == nil {
			return port.ErrNotFound
		}
		if was, err = connectionOf(is); err != nil {
			return err
		}
		// The write fails if another writer has changed the connection. Then it is read again.
		remove := &part{key: connectionKey(tenant, id), remove: true}
		remove.where(attrVersion, "=", number(was.Version))
		return s.write(ctx, []*part{remove, {key: tenantKey(id), remove: true}})
	})
	if err != nil {
		return port.Connection{}, wrap(err, "remove connection", id)
	}
	return was, nil
}

func connectionOf(is item) (c port.Connection, err error) {
	if err := format.Unpack(documentOf(is[attrDoc]), &c); err != nil {
		return c, fmt.Errorf("unreadable connection: %w", err)
	}
	c.Version = numberOf(is[attrVersion])
	return c, nil
}

// LoadConnections implements port.Connections.
func (s *Store) LoadConnections(ctx context.Context, tenant, after string, limit int) (found []port.Connection, err error) {
	query := &dynamodb.QueryInput{
		TableName: &s.config.Table, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: s.returnConsumed(), Limit: limitOf(limit),
		KeyConditionExpression:   aws.String("#pk = :pk AND #sk > :sk"),
		ExpressionAttributeNames: map[string]string{"#pk": schema.Partition.Name, "#sk": schema.Sort.Name},
		ExpressionAttributeValues: item{
			":pk": text(connectionPrefix + tenant), ":sk": text(sortConnection + after),
		},
	}
	var unreadable error
	err = s.each(ctx, query, func(is item) bool {
		c, err := connectionOf(is)
		unreadable = errors.Join(unreadable, err)
		found = append(found, c)
		return len(found) < limit && unreadable == nil
	})
	return found, wrap(errors.Join(err, unreadable), "read the connections of", tenant)
}

// Connected implements port.Connections.
func (s *Store) Connected(ctx context.Context, tenant string) (bool, error) {
	found, err := s.LoadConnections(ctx, tenant, "", 1)
	return len(found) > 0, err
}

// ConnectedTenants implements port.Connections. It reads one item of each tenant.
func (s *Store) ConnectedTenants(ctx context.Context, after string, limit int) (tenants []string, err error) {
	for len(tenants) < limit {
		query := s.indexQuery(schema.IndexList, attrList, connectionList)
		*query.KeyConditionExpression += " AND #born > :after"
		query.ExpressionAttributeNames["#born"] = attrBorn
		behind := []byte{0} // no tenant is empty
		if after != "" {
			behind = []byte(after + "\x00\xff") // no id has this byte
		}
		query.ExpressionAttributeValues[":after"] = bytes(behind)
		query.Limit = limitOf(1)
		next := ""
		err := s.each(ctx, query, func(is item) bool {
			next, _, _ = strings.Cut(string(bytesOf(is[attrBorn])), "\x00")
			return false
		})
		if err != nil {
			return tenants, wrap(err, "list the tenants after", after)
		}
		if next == "" {
			break
		}
		after, tenants = next, append(tenants, next)
	}
	return tenants, nil
}
