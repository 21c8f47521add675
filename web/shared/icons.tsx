// Icons, drawn in the colour of the text.

const PATHS = {
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.3 10.3 14 14",
  filter: "M2 3.5h12M4.5 8h7M7 12.5h2",
  up: "M8 12.5v-9M4 7l4-4 4 4",
  down: "M8 3.5v9M4 9l4 4 4-4",
  right: "M6 3.5 10.5 8 6 12.5",
  close: "M4 4l8 8M12 4l-8 8",
  expand: "M9.5 2.5h4v4M13.5 2.5 9 7M6.5 13.5h-4v-4M2.5 13.5 7 9",
  shrink: "M13.5 2.5 9.5 6.5M9.5 3v3.5H13M2.5 13.5l4-4M3 9.5h3.5V13",
  folder: "M1.8 4.2h4.4l1.5 1.6h6.5v6.9H1.8Z",
  refresh: "M13.2 6.5A5.5 5.5 0 1 0 13.5 9M13.5 3v3.5H10",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
