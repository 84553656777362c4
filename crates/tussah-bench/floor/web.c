/* The floor of the web servers: prepared responses, one epoll thread for each core, one recv and one send a request.
 *
 * web PORT WORKERS DIR: every file under DIR is read at the start, and its header put before it. A request is whatever
 * ends with an empty line; its path is looked up and what is there is sent. No more of HTTP is spoken than that, so no
 * server can do less. Bodies of requests are not understood.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 16384, EVENTS_MAX = 512, BACKLOG = 4096, READS = EPOLLIN | EPOLLRDHUP | EPOLLET };

/* A response: header and body in one piece. The table is probed linearly and at most half full. */
struct response {
    char *path;
    size_t path_len;
    char *bytes;
    size_t len;
};
static struct response *table;
static size_t table_mask, table_used, root_len;
static struct response not_found = {.bytes = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"};

/* A connection, found by its descriptor: what is left to send, and the beginning of a request that came in parts. */
struct connection {
    const char *out;
    size_t out_len;
    char *in;
    uint32_t in_len;
    int close;
};
static struct connection *connections;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static struct response *slot(const char *path, size_t len) {
    uint64_t hash = len;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)path[i]) * 0x100000001b3;
    for (size_t at = hash ^ hash >> 29;; at++) {
        struct response *found = &table[at & table_mask];
        if (!found->path || (found->path_len == len && !memcmp(found->path, path, len)))
            return found;
    }
}

static int count(const char *name, const struct stat *stat, int type, struct FTW *ftw) {
    (void)name, (void)stat, (void)ftw;
    table_used += type == FTW_F;
    return 0;
}

static int load(const char *name, const struct stat *stat, int type, struct FTW *ftw) {
    (void)ftw;
    if (type != FTW_F)
        return 0;
    size_t size = stat->st_size;
    char *bytes = malloc(size + 256), *path = strdup(name + root_len);
    FILE *file = fopen(name, "r");
    if (!bytes || !path || !file)
        die(name);
    int head = sprintf(bytes, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n", size);
    if (fread(bytes + head, 1, size, file) != size)
        die(name);
    fclose(file);
    size_t len = strlen(path);
    *slot(path, len) = (struct response){path, len, bytes, head + size};
    return 0;
}

static void end(int fd) {
    free(connections[fd].in);
    connections[fd] = (struct connection){0};
    close(fd);
}

/* Sends what is left; 0 if it is all sent, 1 if the socket is full, -1 if the connection has ended. */
static int flush(int epoll, int fd, struct connection *c, int waits) {
    while (c->out_len) {
        ssize_t sent = send(fd, c->out, c->out_len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct epoll_event event = {.events = EPOLLOUT | EPOLLET, .data.fd = fd};
            if (!waits && epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event))
                die("epoll_ctl");
            return 1;
        }
        if (sent < 0) {
            end(fd);
            return -1;
        }
        c->out += sent;
        c->out_len -= sent;
    }
    if (c->close) {
        end(fd);
        return -1;
    }
    return 0;
}

/* The end of the request that begins at `at`, or NULL; notes whether it is the last one. */
static const char *request_end(const char *at, const char *end, int *close) {
    while ((at = memchr(at, '\n', end - at))) {
        at++;
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
            return at + 2;
        if (end - at >= 17 && (at[0] | 32) == 'c' && !strncasecmp(at, "connection: close", 17))
            *close = 1;
    }
    return NULL;
}

/* Answers the requests in `bytes` in order; returns how many bytes were theirs, or -1 if the connection has ended. */
static ssize_t answer(int epoll, int fd, struct connection *c, const char *bytes, size_t len) {
    size_t done = 0;
    while (done < len && !c->out_len) {
        const char *begin = bytes + done;
        int last = 0;
        const char *stop = request_end(begin, bytes + len, &last);
        if (!stop)
            break;
        const char *path = memchr(begin, ' ', stop - begin);
        const char *space = path ? memchr(path + 1, ' ', stop - path - 1) : NULL;
        struct response *found = space ? slot(path + 1, space - path - 1) : &not_found;
        if (!found->path)
            found = &not_found;
        c->out = found->bytes;
        c->out_len = found->len;
        c->close = last;
        done = stop - bytes;
        if (flush(epoll, fd, c, 0) < 0)
            return -1;
    }
    return done;
}

/* Reads until nothing more is there. Since readiness is edge-triggered, a read that fills less than the buffer has
 * taken all, but for the end of the stream. What is not yet answered is kept. */
static void turn(int epoll, int fd, char *buffer, int ends) {
    struct connection *c = &connections[fd];
    for (;;) {
        size_t kept = c->in_len, room = REQUEST_MAX - kept;
        if (kept)
            memcpy(buffer, c->in, kept);
        ssize_t got = room ? recv(fd, buffer + kept, room, 0) : 0;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            return end(fd);
        size_t len = kept + got;
        ssize_t done = answer(epoll, fd, c, buffer, len);
        if (done < 0)
            return;
        c->in_len = len - done;
        if (c->in_len) {
            if (!c->in && !(c->in = malloc(REQUEST_MAX)))
                die("malloc");
            memcpy(c->in, buffer + done, c->in_len);
        } else if (c->in) {
            free(c->in);
            c->in = NULL;
        }
        if (c->out_len || ((size_t)got < room && !ends))
            return;
    }
}

/* The socket takes bytes again: the rest of the response, the requests that came meanwhile, then what is to be read. */
static void writable(int epoll, int fd, char *buffer) {
    struct connection *c = &connections[fd];
    if (flush(epoll, fd, c, 1))
        return;
    if (c->in_len) {
        size_t len = c->in_len;
        memcpy(buffer, c->in, len);
        ssize_t done = answer(epoll, fd, c, buffer, len);
        if (done < 0)
            return;
        c->in_len = len - done;
        memmove(c->in, c->in + done, c->in_len);
        if (c->out_len)
            return;
    }
    struct epoll_event event = {.events = READS, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event))
        die("epoll_ctl");
}

static void admit(int epoll, int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = READS, .data.fd = fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
            die("epoll_ctl");
    }
}

static int listen_at(uint16_t port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* connections inherit it */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, BACKLOG))
        die("listen");
    return fd;
}

static void *work(void *argument) {
    int listener = (int)(intptr_t)argument, epoll = epoll_create1(0);
    char *buffer = malloc(REQUEST_MAX);
    struct epoll_event events[EVENTS_MAX] = {{.events = EPOLLIN, .data.fd = listener}};
    if (epoll < 0 || !buffer || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, events))
        die("epoll");
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                admit(epoll, listener);
            else if (connections[fd].out_len)
                writable(epoll, fd, buffer);
            else
                turn(epoll, fd, buffer, events[i].events & EPOLLRDHUP);
        }
    }
    return NULL;
}

/* Binds the calling thread to the `index`th of the CPUs that the process may use. */
static void pin(int index, const cpu_set_t *allowed) {
    index %= CPU_COUNT(allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, allowed) && index-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: web PORT WORKERS DIR\n");
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    connections = calloc(files.rlim_cur, sizeof *connections);
    not_found.len = strlen(not_found.bytes);

    root_len = strlen(argv[3]);
    while (root_len && argv[3][root_len - 1] == '/')
        argv[3][--root_len] = 0;
    if (nftw(argv[3], count, 16, FTW_PHYS))
        die(argv[3]);
    for (table_mask = 1; table_mask < 2 * table_used;)
        table_mask <<= 1;
    table = calloc(table_mask--, sizeof *table);
    if (!connections || !table || nftw(argv[3], load, 16, FTW_PHYS))
        die(argv[3]);

    int workers = atoi(argv[2]);
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int listeners[workers];
    for (int i = 0; i < workers; i++)
        listeners[i] = listen_at(atoi(argv[1]));
    for (int i = workers; i-- > 0;) {
        pin(i, &allowed); /* a new thread begins where the one that makes it is */
        pthread_t thread;
        if (i && pthread_create(&thread, NULL, work, (void *)(intptr_t)listeners[i]))
            die("pthread_create");
    }
    work((void *)(intptr_t)listeners[0]);
}
