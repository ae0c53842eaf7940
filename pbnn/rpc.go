package pbnn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
)

const rpcName = "PBNNShard"

// service is a shard as net/rpc wants it.
type service struct{ shard Shard }

// Describe answers a call.
func (s *service) Describe(_ struct{}, out *Description) (err error) {
	*out, err = s.shard.Describe(context.Background())
	return err
}

// Differences answers a call.
func (s *service) Differences(q Request, out *[]float64) (err error) {
	*out, err = s.shard.Differences(context.Background(), q)
	return err
}

// Gradients answers a call.
func (s *service) Gradients(q Request, out *[]float64) (err error) {
	*out, err = s.shard.Gradients(context.Background(), q)
	return err
}

// Serve answers for a shard, by net/rpc, all who come to the listener, until it is closed, which is no error. There is no encryption and nobody is asked who they are: listen
// where only those can come who may, such as behind a tunnel.
func Serve(listener net.Listener, shard Shard) error {
	server := rpc.NewServer()
	if err := server.RegisterName(rpcName, &service{shard}); err != nil {
		return fmt.Errorf("pbnn: %w", err)
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pbnn: serving a shard: %w", err)
		}
		go server.ServeConn(connection)
	}
}

// RemoteShard is a Shard that Serve answers for. A connection that breaks, or on which an answer was late, is given up, and the next question makes another.
type RemoteShard struct {
	address string
	mu      sync.Mutex
	client  *rpc.Client
}

var _ Shard = (*RemoteShard)(nil)

// Dial is the shard at a TCP address, such as "127.0.0.1:7000". It connects at the first question.
func Dial(address string) *RemoteShard { return &RemoteShard{address: address} }

// Describe implements Shard.
func (r *RemoteShard) Describe(ctx context.Context) (Description, error) {
	out := new(Description)
	err := r.call(ctx, "Describe", struct{}{}, out)
	if err != nil {
		return Description{}, err
	}
	return *out, nil
}

// Differences implements Shard.
func (r *RemoteShard) Differences(ctx context.Context, q Request) ([]float64, error) {
	return r.numbers(ctx, "Differences", q)
}

// Gradients implements Shard.
func (r *RemoteShard) Gradients(ctx context.Context, q Request) ([]float64, error) {
	return r.numbers(ctx, "Gradients", q)
}

func (r *RemoteShard) numbers(ctx context.Context, method string, q Request) ([]float64, error) {
	out := new([]float64)
	err := r.call(ctx, method, q, out)
	if err != nil {
		return nil, err // a late answer may still be written to out: it is not looked at
	}
	return *out, nil
}

// Close ends the connection.
func (r *RemoteShard) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		return nil
	}
	client := r.client
	r.client = nil
	return client.Close()
}

func (r *RemoteShard) call(ctx context.Context, method string, question, answer any) error {
	client, err := r.connected(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", r.address, err)
	}
	call := client.Go(rpcName+"."+method, question, answer, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		err = call.Error
	case <-ctx.Done():
		err = fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	if err == nil {
		return nil
	}
	if refused := (rpc.ServerError)(""); !errors.As(err, &refused) {
		r.giveUp(client)
	}
	return fmt.Errorf("%s: %w", r.address, err)
}

func (r *RemoteShard) connected(ctx context.Context) (*rpc.Client, error) {
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

// giveUp closes a connection, unless another has taken its place.
func (r *RemoteShard) giveUp(client *rpc.Client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == client {
		r.client = nil
	}
	client.Close() //nolint:errcheck // it is broken or late
}
