package shards

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"sync"
)

// remote is a Shard that another process serves. After an error it connects again at the next question.
type remote struct {
	address string
	mu      sync.Mutex
	client  *rpc.Client
}

var _ Shard = (*remote)(nil)

// Dial returns the shard at a TCP address, such as "127.0.0.1:7000". It connects at the first question.
func Dial(address string) Shard { return &remote{address: address} }

// Describe implements Shard.
func (r *remote) Describe(ctx context.Context) (Description, error) {
	return call[Description](ctx, r, "Describe", struct{}{})
}

// Differences implements Shard.
func (r *remote) Differences(ctx context.Context, q Request) (Answer, error) {
	return call[Answer](ctx, r, "Differences", q)
}

// Close ends the connection.
func (r *remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		return nil
	}
	client := r.client
	r.client = nil
	return client.Close()
}

// call asks and waits for the answer, but not longer than the context.
func call[Reply any](ctx context.Context, r *remote, method string, question any) (Reply, error) {
	var none Reply
	client, err := r.connected(ctx)
	if err != nil {
		return none, fmt.Errorf("%s: %w", r.address, err)
	}
	reply := new(Reply)
	pending := client.Go(rpcName+"."+method, question, reply, make(chan *rpc.Call, 1))
	select {
	case <-pending.Done:
		err = pending.Error
	case <-ctx.Done(): // a late answer may still be written to reply: do not read it
		err = fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	if err == nil {
		return *reply, nil
	}
	r.Close() //nolint:errcheck // it may be broken or late
	return none, fmt.Errorf("%s: %w", r.address, err)
}

func (r *remote) connected(ctx context.Context) (*rpc.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	r.client = rpc.NewClient(connection)
	return r.client, nil
}
