<?php
// A guest book: the front controller of a small PHP application. It has a session, a form with a
// file, and a redirect after POST. Entries and pictures are files in GUESTBOOK_DATA, a variable that
// the web server sets.

declare(strict_types=1);

const ENTRIES_ON_PAGE = 10;
const TEXT_BYTES_MAX = 2000;
const PICTURE_TYPES = [IMAGETYPE_PNG => 'png', IMAGETYPE_JPEG => 'jpeg', IMAGETYPE_GIF => 'gif'];

$data = $_SERVER['GUESTBOOK_DATA'] ?? sys_get_temp_dir() . '/guestbook';
foreach (['', '/pictures', '/sessions'] as $directory) {
    if (!is_dir($data . $directory)) {
        mkdir($data . $directory, 0700, true);
    }
}
session_save_path("$data/sessions");
session_start(['cookie_httponly' => true, 'cookie_samesite' => 'Lax']);
$_SESSION['token'] ??= bin2hex(random_bytes(16));

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$action = $_SERVER['REQUEST_METHOD'] . ' ' . $path;
if ($action === 'GET /' || $action === 'HEAD /') {
    show_entries($data);
} elseif ($action === 'POST /entries') {
    add_entry($data);
} elseif (preg_match('~^(GET|HEAD) /pictures/([0-9a-f]{32}\.(png|jpeg|gif))$~', $action, $parts)) {
    show_picture("$data/pictures/$parts[2]", $parts[3]);
} elseif ($path === '/' || $path === '/entries') {
    header('Allow: ' . ($path === '/' ? 'GET, HEAD' : 'POST'));
    fail(405, 'This page does not take that method.');
} else {
    fail(404, "There is no page $path.");
}

/** Shows a page of entries, the newest first. */
function show_entries(string $data): void
{
    $lines = is_file("$data/entries") ? file("$data/entries", FILE_IGNORE_NEW_LINES) : [];
    $pages = max(1, (int) ceil(count($lines) / ENTRIES_ON_PAGE));
    $page = min($pages, max(1, (int) ($_GET['page'] ?? 1)));
    $shown = array_slice(array_reverse($lines), ($page - 1) * ENTRIES_ON_PAGE, ENTRIES_ON_PAGE);
    $body = '';
    if (isset($_SESSION['message'])) {
        $body .= '<p class="message">' . text($_SESSION['message']) . "</p>\n";
        unset($_SESSION['message']);
    }
    $body .= form();
    foreach ($shown as $line) {
        $entry = json_decode($line, true);
        $picture = isset($entry['picture']) ? "<img src=\"/pictures/$entry[picture]\" alt=\"\">" : '';
        $body .= '<article><h2>' . text($entry['name']) . '</h2><p>' . nl2br(text($entry['text'])) . "</p>$picture"
            . '<footer>' . gmdate('j F Y, H:i', $entry['time']) . " UTC</footer></article>\n";
    }
    if ($pages > 1) {
        $link = fn (int $n): string => $n === $page ? " $n" : " <a href=\"/?page=$n\">$n</a>";
        $body .= '<nav>Page' . implode('', array_map($link, range(1, $pages))) . "</nav>\n";
    }
    page('Guest book', $body);
}

function form(): string
{
    $name = text($_SESSION['name'] ?? '');
    return <<<HTML
        <form method="post" action="/entries" enctype="multipart/form-data">
        <input type="hidden" name="token" value="{$_SESSION['token']}">
        <label>Name <input name="name" value="$name" required maxlength="100"></label>
        <label>Text <textarea name="text" required rows="4"></textarea></label>
        <label>Picture <input type="file" name="picture" accept="image/png,image/jpeg,image/gif"></label>
        <button>Sign the book</button>
        </form>

        HTML;
}

/** Adds an entry, and redirects, so that a reload of the page does not send the form again. */
function add_entry(string $data): void
{
    if (!hash_equals($_SESSION['token'], (string) ($_POST['token'] ?? ''))) {
        fail(403, 'The form has expired. Load the page again.');
        return;
    }
    $name = trim((string) ($_POST['name'] ?? ''));
    $text = trim((string) ($_POST['text'] ?? ''));
    if ($name === '' || $text === '' || strlen($name) > 100 || strlen($text) > TEXT_BYTES_MAX) {
        fail(422, 'An entry needs a name, and a text of up to ' . TEXT_BYTES_MAX . ' bytes.');
        return;
    }
    $entry = ['name' => $name, 'text' => $text, 'time' => time()];
    $file = $_FILES['picture'] ?? ['error' => UPLOAD_ERR_NO_FILE];
    if ($file['error'] !== UPLOAD_ERR_NO_FILE) {
        $size = $file['error'] === UPLOAD_ERR_OK ? getimagesize($file['tmp_name']) : false;
        $type = PICTURE_TYPES[$size[2] ?? 0] ?? null;
        if ($type === null) {
            fail(422, 'The picture is too large, or is not a PNG, JPEG or GIF file.');
            return;
        }
        $entry['picture'] = bin2hex(random_bytes(16)) . ".$type";
        move_uploaded_file($file['tmp_name'], "$data/pictures/$entry[picture]");
    }
    $line = json_encode($entry, JSON_INVALID_UTF8_SUBSTITUTE | JSON_THROW_ON_ERROR) . "\n";
    file_put_contents("$data/entries", $line, FILE_APPEND | LOCK_EX);
    $_SESSION['name'] = $name;
    $_SESSION['message'] = "Thank you, $name.";
    header('Location: /', true, 303);
}

function show_picture(string $file, string $type): void
{
    if (!is_file($file)) {
        fail(404, 'There is no such picture.');
        return;
    }
    session_write_close(); // other pages of this visitor need not wait
    header("Content-Type: image/$type");
    header('Content-Length: ' . filesize($file));
    header('X-Content-Type-Options: nosniff');
    readfile($file);
}

function fail(int $status, string $reason): void
{
    http_response_code($status);
    page("Error $status", '<p>' . text($reason) . " <a href=\"/\">To the guest book</a></p>\n");
}

function page(string $title, string $body): void
{
    header('Content-Type: text/html; charset=utf-8');
    echo <<<HTML
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><title>$title</title>
        <meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
        <body><h1><a href="/">Guest book</a></h1>
        $body</body></html>

        HTML;
}

function text(string $text): string
{
    return htmlspecialchars($text, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}
