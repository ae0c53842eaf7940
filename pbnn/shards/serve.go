package shards

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
)

// What a question to Serve may be about.
const (
	minBatchSize = 5         // fewest rows n of a mini-batch, a usual threshold in the publication of counts
	mostRows     = 1_000_000 // n M, for each chain
	mostChains   = 1000      // J
)

// Serve answers questions to a shard, by net/rpc on the listener, until the listener is closed, which is no error. It
// refuses questions about mini-batches of fewer than 5 rows, since a sum over them leaves the shard, about more than a
// million rows, and for more than 1000 chains. There is neither encryption nor authentication: listen where only the
// entitled can connect, such as on 127.0.0.1 behind a tunnel.
func Serve(listener net.Listener, shard Shard) error {
	server := rpc.NewServer()
	if err := server.RegisterName(rpcName, &service{shard}); err != nil {
		return fmt.Errorf("shards: %w", err)
	}
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("shards: serving a shard: %w", err)
		}
		go server.ServeConn(connection)
	}
}

const rpcName = "PBNNShard"

// service is a shard with the methods that net/rpc calls.
type service struct{ shard Shard }

// Describe answers a call.
func (s *service) Describe(_ struct{}, out *Description) (err error) {
	*out, err = s.shard.Describe(context.Background())
	return err
}

// Differences answers a call.
func (s *service) Differences(q Request, out *Answer) (err error) {
	if q.BatchSize < minBatchSize {
		return fmt.Errorf("shards: the question is refused: its mini-batches have %d rows, and must have at least %d",
			q.BatchSize, minBatchSize)
	}
	if q.Chains > mostChains || q.Batches > mostRows/q.BatchSize { // the product could overflow
		return fmt.Errorf("shards: the question is refused: it is for %d chains on %d mini-batches of %d rows, and may be "+
			"for %d chains on %d rows in all", q.Chains, q.Batches, q.BatchSize, mostChains, mostRows)
	}
	*out, err = s.shard.Differences(context.Background(), q)
	return err
}
