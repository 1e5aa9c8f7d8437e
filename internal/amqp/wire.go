package amqp

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync/atomic"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// readBuffer is how much is read from a socket at a time. The library reads 4 KiB, which is a system call for every ten
	// messages of a backlog.
	readBuffer = 64 << 10
	// headerRoom is by how much a frame that comes in may exceed frame_max. What a broker adds to a message is some hundred
	// bytes for every queue in which it died, and the routing keys that CC named.
	headerRoom = 1 << 20
)

// wire is the socket under the client library.
//
// RabbitMQ keeps to the frame size that was agreed on when it cuts a body into
// frames, and not when it adds headers to a message: a delivery count, x-death.
// The library ends a connection on which a larger frame comes in. So a message
// whose headers nearly filled a frame when it was published would end, from its
// first requeue or dead-lettering on, the connection of everybody who reads its
// queue, each time that it is delivered, and hold up all that is behind it
// (measured on 3.10 and 4.3). That is why wire tells the library of a frame_max
// that is larger by headerRoom, and answers the broker with the broker's own. What
// is sent stays within that one: see dialNode.
type wire struct {
	net.Conn
	reader *bufio.Reader // one goroutine reads
	// pending is a frame of the handshake that was read and not handed on yet; passing says that no more are looked at.
	pending []byte
	passing bool
	// frameMax is what the broker asked for; 0 before it did, and where it has no limit.
	frameMax atomic.Uint32
	answered bool // frameMax was answered; writes are made one after the other
}

func newWire(conn net.Conn) *wire {
	return &wire{Conn: conn, reader: bufio.NewReaderSize(conn, readBuffer)}
}

// A method frame is a type, a channel (2 bytes), the payload's size (4), the
// payload, which begins with a class and a method (2 each), and an end. In
// connection.tune and its answer these are followed by channel_max (2), frame_max
// (4) and heartbeat (2).
const (
	frameMethod     = 1
	frameHead       = 7
	tuneSize        = 12
	tuneFrameMax    = frameHead + 6
	classConnection = 10
	methodTune      = 30
	methodTuneOk    = 31
	// handshakeMax is the largest frame before frame_max is agreed on.
	handshakeMax = 4096
)

// tuneLimit is frame_max in a frame that is connection.tune or its answer; nil in any other.
func tuneLimit(frame []byte, method uint16) []byte {
	if len(frame) != frameHead+tuneSize+1 || frame[0] != frameMethod ||
		binary.BigEndian.Uint16(frame[frameHead:]) != classConnection || binary.BigEndian.Uint16(frame[frameHead+2:]) != method {
		return nil
	}
	return frame[tuneFrameMax : tuneFrameMax+4]
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.pending) == 0 && !w.passing {
		if err := w.nextOfHandshake(); err != nil {
			return 0, err
		}
	}
	if len(w.pending) > 0 {
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		return n, nil
	}
	return w.reader.Read(p)
}

// nextOfHandshake reads a frame, unless what comes is none: that is passed on.
func (w *wire) nextOfHandshake() error {
	head, _ := w.reader.Peek(frameHead)
	if len(head) < frameHead || head[0] != frameMethod || binary.BigEndian.Uint32(head[3:]) > handshakeMax {
		w.passing = true
		return nil
	}
	frame := make([]byte, frameHead+binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(w.reader, frame); err != nil {
		return err
	}
	if limit := tuneLimit(frame, methodTune); limit != nil {
		if frameMax := binary.BigEndian.Uint32(limit); frameMax > 0 {
			w.frameMax.Store(frameMax)
			binary.BigEndian.PutUint32(limit, frameMax+headerRoom)
		}
		w.passing = true
	}
	w.pending = frame
	return nil
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	if frameMax := w.frameMax.Load(); frameMax > 0 && !w.answered {
		if tuneLimit(p, methodTuneOk) != nil {
			p = slices.Clone(p)
			binary.BigEndian.PutUint32(tuneLimit(p, methodTuneOk), frameMax)
			w.answered = true
		}
	}
	return w.Conn.Write(p)
}

// keepTo has the library send no larger frames than the broker takes. It is
// called before a channel is opened.
func (w *wire) keepTo(conn *amqp091.Connection) {
	if frameMax := w.frameMax.Load(); frameMax > 0 {
		conn.Config.FrameSize = int(frameMax)
	}
}
