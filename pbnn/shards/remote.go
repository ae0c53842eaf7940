package shards

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"strings"
	"sync"
)

// remote is a Shard that another process serves. After a broken connection or a late answer it connects again at the
// next question.
type remote struct {
	address string
	tls     *tls.Config // nil: no encryption and no certificates
	mu      sync.Mutex
	client  *rpc.Client
}

var _ Shard = (*remote)(nil)

// Dial returns the shard at a TCP address, such as "127.0.0.1:7000". It connects at the first question. With a TLS
// configuration the connection is encrypted. The configuration must have a certificate that the shard accepts
// (Certificates), and authorities, one of which has signed the shard's certificate (RootCAs). The shard's certificate
// must name the address's host, or ServerName. If the configuration is nil, Limits.TLS must be nil too.
func Dial(address string, config *tls.Config) Shard {
	return &remote{address: address, tls: config}
}

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
	said := (rpc.ServerError)("")
	if !errors.As(err, &said) {
		r.giveUp(client)
	} else if why, refused := strings.CutPrefix(string(said), errRefused.Error()); refused {
		err = fmt.Errorf("%w%s", errRefused, why)
	}
	return none, fmt.Errorf("%s: %w", r.address, err)
}

func (r *remote) connected(ctx context.Context) (*rpc.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	dial := (&net.Dialer{}).DialContext
	if r.tls != nil {
		dial = (&tls.Dialer{Config: r.tls}).DialContext
	}
	connection, err := dial(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	r.client = rpc.NewClient(connection)
	return r.client, nil
}

// giveUp closes a connection, unless another has taken its place.
func (r *remote) giveUp(client *rpc.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == client {
		r.client = nil
	}
	client.Close() //nolint:errcheck // it is broken or late
}
